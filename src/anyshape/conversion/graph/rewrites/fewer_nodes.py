"""Small patterns that fewer nodes say as well: tables looked up as a whole, one of several along an axis, all parts of
one; floor divisions of sizes, quotients by a root, means over several axes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

import onnx_ir as ir

from anyshape.conversion.graph.known_sizes import Size, Sizes, put_instead, size_read
from anyshape.onnxfile.graph import (
    constant,
    constant_of,
    first_input,
    insert_several,
    is_op,
    maker,
    nodes_of,
    only_user,
    permutation,
    replace,
    users,
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
    if others:
        put_instead(node, sizes, "Unsqueeze", [table, constant(node.graph, others)])
    else:
        replace(result, table)


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
    put, taken = (_one_axis(one, len(order)) for one in (added, node))
    if put is None or taken is None or order[taken] != put:
        return False
    rest = [axis - (axis > put) for axis in order if axis != put]
    put_instead(node, sizes, "Transpose", [added.inputs[0]], {"perm": rest})
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
    if end[0] != start[0] + 1 or step not in (None, (1,)) or not isinstance(length, int):
        return False
    if not 0 <= start[0] < length:  # behind the end nothing is left of it
        return False
    put_instead(node, sizes, "Gather", [cut.inputs[0], constant(node.graph, start[0])], {"axis": axis})
    return True


def _one_axis(node: ir.Node, rank: int) -> int | None:
    """The one axis that an Unsqueeze or a Squeeze of this rank (the larger one) names."""
    axes = whole_numbers(node.inputs[1]) if len(node.inputs) > 1 else None
    return axes[0] % rank if axes is not None and len(axes) == 1 else None


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


# ---- floor divisions of sizes that are never negative
#
# There ONNX's Div, which cuts towards zero, is one already. The size of a feature map, `(height - 1)//8 + 1`, is
# translated with a Mod and a Sub for numbers below zero.


def shorten_floors(graph: ir.Graph, sizes: Sizes) -> None:
    """Div(Sub(a, Mod(a, c)), c) becomes Div(a, c) where a >= 0 and c > 0."""
    for node in nodes_of(graph, "Div"):
        rest = maker(node.inputs[0], "Sub")
        modulo = None if rest is None else maker(rest.inputs[1], "Mod")
        if rest is None or modulo is None or modulo.attributes.get_int("fmod", 0) == 1:
            continue
        dividend, divisor = first_input(rest), node.inputs[1]
        if modulo.inputs[0] is not dividend or _one_number(modulo.inputs[1]) != _one_number(divisor):
            continue
        least = _least(dividend, sizes)
        if (_one_number(divisor) or 0) > 0 and least is not None and least >= 0:
            node.replace_input_with(0, dividend)


def _one_number(value: ir.Value | None) -> int | None:
    numbers = whole_numbers(value)
    return numbers[0] if numbers is not None and len(numbers) == 1 else None


def _least(value: ir.Value | None, sizes: Sizes) -> int | None:
    """The least that a number computed from sizes may be; None where nothing is known."""
    node = maker(value, "Squeeze", "Shape", *_LEAST)
    if node is None:
        return _one_number(value)
    if node.op_type == "Shape":
        return sizes.smallest(size_read(node, sizes))
    first = _least(node.inputs[0], sizes)
    if node.op_type == "Squeeze" or first is None:
        return first
    # what is known of a size is how small it may be: only a number can be taken away
    second = _one_number(node.inputs[1]) if node.op_type == "Sub" else _least(node.inputs[1], sizes)
    return None if second is None else _LEAST[node.op_type](first, second)


def _product(first: int, second: int) -> int | None:
    return first * second if first >= 0 and second >= 0 else None


def _quotient(first: int, second: int) -> int | None:
    """The divisor may be large."""
    return 0 if first >= 0 and second > 0 else None


_LEAST: dict[str, Callable[[int, int], int | None]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mul": _product,
    "Div": _quotient,
}
"""Of two numbers, from the least that each may be."""


# ---- quotients by a root
#
# torch's `rsqrt` is translated as the reciprocal of a root and a product with it. ONNX Runtime knows a root-mean-square
# norm when it sees a quotient.


def divide_by_roots(graph: ir.Graph, sizes: Sizes) -> None:
    """Mul(x, Reciprocal(Sqrt(y))) becomes Div(x, Sqrt(y))."""
    for node in nodes_of(graph, "Mul"):
        for place, value in enumerate(node.inputs):
            inverse = maker(value, "Reciprocal")
            root = maker(first_input(inverse), "Sqrt") if inverse is not None else None
            if root is None:
                continue
            put_instead(node, sizes, "Div", [node.inputs[1 - place], root.outputs[0]])
            break


# ---- a mean over several axes is taken at once, and not axis by axis


def join_means(graph: ir.Graph, sizes: Sizes) -> None:
    """ReduceMean(ReduceMean(x, a), b) that keep their axes become ReduceMean(x, [a, b])."""
    for node in nodes_of(graph, "ReduceMean"):
        inner = maker(node.inputs[0], "ReduceMean")
        if inner is None or len(inner.outputs[0].uses()) > 1:
            continue
        axes = [*(_axes_of_mean(inner) or ()), *(_axes_of_mean(node) or ())]
        if None in (_axes_of_mean(inner), _axes_of_mean(node)) or min(axes) < 0 or len(set(axes)) < len(axes):
            continue
        put_instead(node, sizes, "ReduceMean", [first_input(inner), constant(graph, axes)], {"keepdims": 1})


def _axes_of_mean(node: ir.Node) -> tuple[int, ...] | None:
    """The axes over which a node that keeps them takes its mean."""
    keeps = node.attributes.get_int("keepdims", 1) == 1
    return (whole_numbers(node.inputs[1]) or None) if keeps and len(node.inputs) > 1 else None
