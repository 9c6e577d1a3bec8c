"""Parts of an axis by one Split: queries, keys and values out of one product, and slices that part it among them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx_ir as ir

from anyshape.conversion.graph.known_sizes import Size, Sizes, reshaped
from anyshape.onnxfile.graph import (
    constant,
    first_input,
    insert_several,
    is_op,
    maker,
    nodes_of,
    permutation,
    replace,
    transposed,
    users,
    whole_numbers,
)

# ---- queries, keys and values
#
# Models view the product as [..., 3, features], move the 3 to the front and choose one after the other: the whole is
# copied twice. A Split copies it once, and each part is viewed and moved by itself, where that is needed at all.


def split_products(graph: ir.Graph, sizes: Sizes) -> None:
    """Gather(Transpose(Reshape(x))) of numbered parts becomes Split(x), with a Reshape and a Transpose of each part."""
    for node in nodes_of(graph, "Transpose"):
        viewed = maker(node.inputs[0], "Reshape")
        chosen = _choosing_nodes(node)
        if viewed is None or not chosen:
            continue
        whole, view = sizes.all_of(first_input(viewed)), sizes.all_of(viewed.outputs[0])
        order = permutation(node)
        if whole is None or view is None or not _parts_last_axis(whole, view, order[0]):
            continue
        parts = _parts_of(node, first_input(viewed), whole, view[order[0]])
        rest = [axis - (axis > order[0]) for axis in order[1:]]
        axes = [size for axis, size in enumerate(view) if axis != order[0]]
        for gather, index in chosen:
            part = reshaped(gather, parts[index], axes, sizes)
            if part is None:
                continue
            if rest != sorted(rest):
                part = transposed(gather, part, rest, axes)
            replace(gather.outputs[0], part)


def _choosing_nodes(node: ir.Node) -> list[tuple[ir.Node, int]]:
    """The nodes that take one part of the first axis each; none if anybody reads the whole."""
    found = []
    for user in users(node.outputs[0]):
        index = whole_numbers(user.inputs[1]) if user.op_type == "Gather" and len(user.inputs) > 1 else None
        is_scalar = index is not None and user.inputs[1] is not None and list(user.inputs[1].shape or ()) == []
        if not is_scalar or index is None or user.attributes.get_int("axis", 0) != 0 or index[0] < 0:
            return []
        found.append((user, index[0]))
    return [] if node.outputs[0].is_graph_output() else found


def _parts_last_axis(whole: Sequence[int | str], view: Sequence[int | str], axis: int) -> bool:
    """Whether the view cuts the last axis alone, and the axis in question is the first of what it is cut into."""
    cut = [size for size in view[len(whole) - 1 :] if isinstance(size, int)]
    if tuple(view[: len(whole) - 1]) != tuple(whole[:-1]) or axis != len(whole) - 1 or len(cut) != len(view) - axis:
        return False
    return math.prod(cut) == whole[-1]


def _parts_of(node: ir.Node, value: ir.Value, whole: Sequence[int | str], count: int | str) -> Sequence[ir.Value]:
    assert isinstance(count, int)
    assert isinstance(whole[-1], int)
    assert isinstance(node.graph, ir.Graph)
    width = whole[-1] // count
    inputs = [value, constant(node.graph, [width] * count)]
    return insert_several(node, "Split", inputs, {"axis": len(whole) - 1}, [([*whole[:-1], width], value)] * count)


# ---- slices that part an axis among them

Part = tuple[int, int]


def split_instead_of_slices(graph: ir.Graph, sizes: Sizes) -> None:
    """`x[..., :2]` and `x[..., 2:]` become Split(x), where the axis has a fixed size and nobody reads x otherwise."""
    for value in list(dict.fromkeys(first_input(node) for node in nodes_of(graph, "Slice"))):
        known, slices = sizes.of(value), users(value)
        cut = all(is_op(node, "Slice") and place == 0 for node, place in value.uses())
        if known is None or value.is_graph_output() or not cut:
            continue
        axes = {_sliced_axis(node, len(known)) for node in slices}
        axis = axes.pop()
        if axis is not None and not axes and len(slices) > 1:
            _split_of_slices(graph, value, axis, known, slices)


def _split_of_slices(
    graph: ir.Graph, value: ir.Value, axis: int, known: tuple[Size, ...], slices: list[ir.Node]
) -> None:
    size = known[axis]
    parts = {node: _sliced_part(node, size) if isinstance(size, int) else None for node in slices}
    covered = sorted((part, place) for place, part in enumerate(parts.values()) if part is not None)
    if len(covered) < len(slices) or not _cover_the_axis([part for part, _ in covered], size):
        return
    lengths = [end - start for (start, end), _ in covered]
    rows = [([*known[:axis], length, *known[axis + 1 :]], value) for length in lengths]
    first = next(node for node in graph if node in parts)
    made = insert_several(first, "Split", [value, constant(graph, lengths)], {"axis": axis}, rows)
    for (_, place), result in zip(covered, made, strict=True):
        replace(slices[place].outputs[0], result)


def _sliced_axis(node: ir.Node, rank: int) -> int | None:
    """The one axis that a slice with a step of one cuts."""
    axes, steps = (whole_numbers(value) for value in (*node.inputs[3:], None, None)[:2])
    plain = len(node.inputs) < 5 or node.inputs[4] is None or steps == (1,)
    return axes[0] % rank if axes is not None and len(axes) == 1 and plain else None


def _sliced_part(node: ir.Node, size: int) -> Part | None:
    """From where to where it cuts an axis of this size."""
    start, end = (whole_numbers(value) for value in node.inputs[1:3])
    if start is None or end is None:
        return None
    first, last, _ = slice(start[0], end[0]).indices(size)
    return (first, last) if first < last else None


def _cover_the_axis(parts: list[Part], size: Size) -> bool:
    """Whether one begins where the other ends, from the first place to the last."""
    borders = [0, *(end for _, end in parts)]
    return [start for start, _ in parts] == borders[:-1] and borders[-1] == size
