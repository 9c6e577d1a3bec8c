"""Slices that part an axis among them are one Split."""

from __future__ import annotations

import onnx_ir as ir

from anyshape.conversion.graph.known_sizes import Size, Sizes
from anyshape.onnxfile.graph import (
    constant,
    first_input,
    insert_several,
    is_op,
    nodes_of,
    replace,
    users,
    whole_numbers,
)

Part = tuple[int, int]


def join(graph: ir.Graph, sizes: Sizes) -> None:
    """`x[..., :2]` and `x[..., 2:]` become Split(x), where the axis has a fixed size and nobody reads x otherwise."""
    for value in list(dict.fromkeys(first_input(node) for node in nodes_of(graph, "Slice"))):
        known, slices = sizes.of(value), users(value)
        cut = all(is_op(node, "Slice") and place == 0 for node, place in value.uses())
        if known is None or value.is_graph_output() or not cut:
            continue
        axes = {_axis(node, len(known)) for node in slices}
        axis = axes.pop()
        if axis is not None and not axes and len(slices) > 1:
            _split(graph, value, axis, known, slices)


def _split(graph: ir.Graph, value: ir.Value, axis: int, known: tuple[Size, ...], slices: list[ir.Node]) -> None:
    size = known[axis]
    parts = {node: _part(node, size) if isinstance(size, int) else None for node in slices}
    covered = sorted((part, place) for place, part in enumerate(parts.values()) if part is not None)
    if len(covered) < len(slices) or not _cover([part for part, _ in covered], size):
        return
    lengths = [end - start for (start, end), _ in covered]
    rows = [([*known[:axis], length, *known[axis + 1 :]], value) for length in lengths]
    first = next(node for node in graph if node in parts)
    made = insert_several(first, "Split", [value, constant(graph, lengths)], {"axis": axis}, rows)
    for (_, place), result in zip(covered, made, strict=True):
        replace(slices[place].outputs[0], result)


def _axis(node: ir.Node, rank: int) -> int | None:
    """The one axis that a slice with a step of one cuts."""
    axes, steps = (whole_numbers(value) for value in (*node.inputs[3:], None, None)[:2])
    plain = len(node.inputs) < 5 or node.inputs[4] is None or steps == (1,)
    return axes[0] % rank if axes is not None and len(axes) == 1 and plain else None


def _part(node: ir.Node, size: int) -> Part | None:
    """From where to where it cuts an axis of this size."""
    start, end = (whole_numbers(value) for value in node.inputs[1:3])
    if start is None or end is None:
        return None
    first, last, _ = slice(start[0], end[0]).indices(size)
    return (first, last) if first < last else None


def _cover(parts: list[Part], size: Size) -> bool:
    """Whether one begins where the other ends, from the first place to the last."""
    borders = [0, *(end for _, end in parts)]
    return [start for start, _ in parts] == borders[:-1] and borders[-1] == size
