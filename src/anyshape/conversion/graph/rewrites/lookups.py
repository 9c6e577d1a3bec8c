"""Entries that are picked by fewer nodes: tables looked up as a whole, and one of several along an axis."""

from __future__ import annotations

import onnx_ir as ir

from anyshape.conversion.graph.known_sizes import Size, Sizes
from anyshape.onnxfile.graph import (
    constant,
    constant_of,
    first_input,
    insert,
    maker,
    nodes_of,
    only_user,
    permutation,
    replace,
    whole_numbers,
)

# ---- a table that is looked up at all its places, in their order, is the table itself
#
# Models index a mask by the numbers of all rows and all columns, so that another mask could take its place: two Ranges,
# spread against each other and joined to pairs, and a GatherND. A mask that says yes everywhere is left out, too.


def leave_out_lookups(graph: ir.Graph, sizes: Sizes) -> None:
    for node in nodes_of(graph, "GatherND"):
        _leave_out_lookup(node, sizes)
    for node in nodes_of(graph, "And"):
        _leave_out_truth(node, sizes)


def _leave_out_lookup(node: ir.Node, sizes: Sizes) -> None:
    table, result = first_input(node), node.outputs[0]
    have, wanted = sizes.all_of(table), sizes.all_of(result)
    if have is None or wanted is None or node.attributes.get_int("batch_dims", 0) != 0:
        return
    indices = _joined_indices(node.inputs[1])
    if len(indices) != len(have):
        return
    places = [_counted_axis(value, size, len(wanted), sizes) for value, size in zip(indices, have, strict=True)]
    found = [place for place in places if place is not None]
    others = [axis for axis in range(len(wanted)) if axis not in found]
    if len(found) != len(have) or found != sorted(set(found)) or any(wanted[axis] != 1 for axis in others):
        return
    assert isinstance(node.graph, ir.Graph)
    inputs = [table, constant(node.graph, others)]
    replace(result, insert(node, "Unsqueeze", inputs, axes=wanted, like=result) if others else table)


def _joined_indices(value: ir.Value | None) -> list[ir.Value]:
    """What Concat(Unsqueeze(Expand(x)), ...) joins to the last axis, before it is spread."""
    joined = maker(value, "Concat")
    found = []
    for part in joined.inputs if joined is not None and joined.attributes.get_int("axis") == -1 else ():
        widened = maker(part, "Unsqueeze")
        spread = maker(first_input(widened), "Expand") if widened is not None else None
        if widened is None or spread is None or whole_numbers(widened.inputs[1]) != (-1,):
            return []
        found.append(first_input(spread))
    return found


def _counted_axis(value: ir.Value, size: Size, rank: int, sizes: Sizes) -> int | None:
    """The axis along which a value counts 0, 1, 2 up to this size, with all others of size 1."""
    axes = sizes.all_of(value)
    while (widened := maker(value, "Unsqueeze")) is not None:
        value = first_input(widened)
    counted = maker(value, "Range")
    if counted is None or axes is None or len(axes) != rank or sizes.of(value) != (size,):
        return None
    starts_at, _, step = (whole_numbers(one) for one in counted.inputs)
    long = [axis for axis, one in enumerate(axes) if one != 1]
    return long[0] if starts_at == (0,) and step == (1,) and len(long) == 1 and axes[long[0]] == size else None


def _leave_out_truth(node: ir.Node, sizes: Sizes) -> None:
    for place, value in enumerate(node.inputs):
        array, other = constant_of(value), node.inputs[1 - place]
        if array is None or array.size != 1 or not array.all() or other is None:
            continue
        known = sizes.all_of(other)
        if known is not None and known == sizes.all_of(node.outputs[0]):
            replace(node.outputs[0], other)
            return


# ---- one of several along an axis, chosen by one node: a Gather instead of a Slice of length one and a Squeeze
#
# An axis of size 1 that is added before a Transpose and taken away behind it is left out, too.


def choose_by_one_node(graph: ir.Graph, sizes: Sizes) -> None:
    for node in nodes_of(graph, "Squeeze"):
        _without_added_axis(node, sizes) or _gather_instead(node, sizes)


def _without_added_axis(node: ir.Node, sizes: Sizes) -> bool:
    """Squeeze(Transpose(Unsqueeze(x))) of the same axis becomes Transpose(x)."""
    moved = maker(node.inputs[0], "Transpose")
    added = maker(first_input(moved), "Unsqueeze") if moved is not None else None
    if moved is None or added is None or only_user(first_input(node), "Squeeze") is None:
        return False
    order = permutation(moved)
    put = _one_axis(added, len(order))
    taken = _one_axis(node, len(order))
    if put is None or taken is None or order[taken] != put:
        return False
    rest = [axis - (axis > put) for axis in order if axis != put]
    result = node.outputs[0]
    made = insert(node, "Transpose", [added.inputs[0]], {"perm": rest}, axes=sizes.of(result), like=result)
    replace(result, made)
    return True


def _gather_instead(node: ir.Node, sizes: Sizes) -> bool:
    """Squeeze(Slice(x, i, i + 1)) becomes Gather(x, i)."""
    cut = maker(node.inputs[0], "Slice")
    known = sizes.of(cut.inputs[0]) if cut is not None else None
    if cut is None or known is None or only_user(first_input(node), "Squeeze") is None:
        return False
    start, end, axes, step = (whole_numbers(value) for value in (*cut.inputs[1:], *[None] * 4)[:4])
    axis = _one_axis(node, len(known))
    if axis is None or start is None or end is None or axes is None or len(axes) != 1 or axes[0] % len(known) != axis:
        return False
    length = known[axis]
    if start[0] < 0 or end[0] != start[0] + 1 or step not in (None, (1,)) or not isinstance(length, int):
        return False
    if start[0] >= length:  # nothing is left of it
        return False
    assert isinstance(node.graph, ir.Graph)
    index = constant(node.graph, start[0])
    result = node.outputs[0]
    made = insert(node, "Gather", [cut.inputs[0], index], {"axis": axis}, axes=sizes.of(result), like=result)
    replace(result, made)
    return True


def _one_axis(node: ir.Node, rank: int) -> int | None:
    """The one axis that an Unsqueeze or a Squeeze of this rank (the larger one) names."""
    axes = whole_numbers(node.inputs[1]) if len(node.inputs) > 1 else None
    return axes[0] % rank if axes is not None and len(axes) == 1 else None
