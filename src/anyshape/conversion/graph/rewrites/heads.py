"""What stands around attention is split, viewed, moved and repeated no more often than ONNX's Attention needs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace as replace_field

import onnx_ir as ir

from anyshape.conversion.graph.known_sizes import Size, Sizes, reshaped
from anyshape.onnxfile.graph import (
    constant,
    first_input,
    insert,
    insert_several,
    is_op,
    maker,
    nodes_of,
    only_user,
    permutation,
    replace,
    transposed,
    users,
    whole_numbers,
)

# ---- queries, keys and values out of one product by one Split
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
    width = whole[-1] // count
    inputs = [value, constant(node.graph, [width] * count)]
    return insert_several(node, "Split", inputs, {"axis": len(whole) - 1}, [([*whole[:-1], width], value)] * count)


# ---- queries, keys and values with all heads in one axis, and the result, too
#
# The operator knows [batch, positions, heads * features] beside [batch, heads, positions, features]. Models view and
# transpose each of the three, and the result back; ONNX Runtime does without three of these four copies.

_BATCH_FIRST, _POSITIONS_FIRST = (0, 2, 1, 3), (1, 2, 0, 3)
"""Orders that lead from a view with heads to what Attention takes: of [b, n, h, d], and of [n, b, h, d]."""
_BACK: dict[tuple[int, ...], tuple[int, ...]] = {(0, 2, 1, 3): (0, 1, 2), (2, 0, 1, 3): (1, 0, 2)}
"""Orders that lead back, and what they are for three axes."""
_INPUTS = 3


@dataclass(frozen=True)
class _FlatSource:
    """Where the heads of one input come from: a value of three axes."""

    value: ir.Value
    axes: tuple[Size, ...]
    swaps: bool
    """Whether positions stand before the batch."""
    heads: int
    turned_by: ir.Node | None = None
    """A RotaryEmbedding between the view and Attention."""
    joined_by: ir.Node | None = None
    """A Concat that puts it behind the keys or values of the past."""


def take_three_axes(graph: ir.Graph, sizes: Sizes) -> None:
    for node in nodes_of(graph, "Attention"):
        flat = [found for value in node.inputs[:_INPUTS] if (found := _flat_source(value, sizes)) is not None]
        back = only_user(node.outputs[0], "Transpose")
        result = sizes.all_of(node.outputs[0])
        plain = not any(node.inputs[4:]) and len(node.outputs) == 1
        if len(flat) < _INPUTS or back is None or permutation(back) not in _BACK or result is None or not plain:
            continue
        joined = only_user(back.outputs[0], "Reshape")
        if joined is not None and flat[1].heads == flat[2].heads and _may_have_past(node, flat):
            _take_three_axes_in(node, flat, back, joined, result, sizes)


def _may_have_past(node: ir.Node, flat: list[_FlatSource]) -> bool:
    """Whether keys and values both continue a past, or neither; causality would count from its beginning."""
    query, key, value = (one.joined_by is not None for one in flat)
    return not query and key == value and not (key and node.attributes.get_int("is_causal", 0) == 1)


def _flat_source(value: ir.Value | None, sizes: Sizes) -> _FlatSource | None:
    past = maker(value, "Concat")
    if past is not None:
        whole = len(past.inputs) == 2 and past.attributes.get_int("axis") in (2, -2)
        found = _flat_source(past.inputs[1], sizes) if whole and sizes.all_of(past.inputs[0]) is not None else None
        return None if found is None or found.joined_by is not None else replace_field(found, joined_by=past)
    turning = maker(value, "RotaryEmbedding")
    if turning is not None and (len(turning.outputs[0].uses()) > 1 or turning.outputs[0].is_graph_output()):
        return None  # it would have to be turned twice
    moved = maker(value if turning is None else turning.inputs[0], "Transpose")
    view = maker(first_input(moved), "Reshape") if moved is not None else None
    if moved is None or view is None:
        return None
    plain, viewed = sizes.all_of(first_input(view)), sizes.all_of(view.outputs[0])
    if plain is None or viewed is None or len(plain) != 3 or len(viewed) != 4:
        return None
    heads, features = viewed[2:]
    fits = viewed[:2] == plain[:2] and isinstance(features, int)
    order = permutation(moved)
    if (
        not fits
        or not isinstance(heads, int)
        or order not in (_BATCH_FIRST, _POSITIONS_FIRST)
        or (turning is not None and order != _BATCH_FIRST)
    ):
        return None
    return _FlatSource(first_input(view), plain, order == _POSITIONS_FIRST, heads, turning)


def _take_three_axes_in(
    node: ir.Node, flat: list[_FlatSource], back: ir.Node, joined: ir.Node, result: tuple[int | str, ...], sizes: Sizes
) -> None:
    batch, heads, positions, features = result
    if not isinstance(heads, int) or not isinstance(features, int):
        return
    axes = (batch, positions, heads * features)
    order = _BACK[permutation(back)]
    inputs = [_batch_first(node, one) for one in flat]
    number_of_heads = {"q_num_heads": flat[0].heads, "kv_num_heads": flat[1].heads}
    mask = node.inputs[3] if len(node.inputs) > _INPUTS else None
    joins = [one.joined_by for one in flat if one.joined_by is not None]
    pasts = [first_input(join) for join in joins]
    rest = [mask, *pasts] if mask is not None or pasts else []
    made, *presents = insert_several(
        node, "Attention", [*inputs, *rest], {**node.attributes, **number_of_heads},
        [(axes, node.outputs[0]), *((sizes.of(join.outputs[0]), join.outputs[0]) for join in joins)],
    )  # fmt: skip
    for join, present in zip(joins, presents, strict=True):
        replace(join.outputs[0], present)
    if order != (0, 1, 2):
        axes = (positions, batch, heads * features)
        made = insert(node, "Transpose", [made], {"perm": list(order)}, axes=axes, like=made)
    wanted = sizes.of(joined.outputs[0])
    view = made if wanted == axes else insert(
        joined, "Reshape", [made, joined.inputs[1]], {"allowzero": joined.attributes.get_int("allowzero", 0)},
        axes=wanted, like=made,
    )  # fmt: skip
    replace(joined.outputs[0], view)


def _batch_first(node: ir.Node, flat: _FlatSource) -> ir.Value:
    value, axes = flat.value, flat.axes
    if flat.swaps:
        axes = (axes[1], axes[0], axes[2])
        value = insert(node, "Transpose", [value], {"perm": [1, 0, 2]}, axes=axes, like=value)
    turning = flat.turned_by
    if turning is None:
        return value
    attributes = {**turning.attributes, "num_heads": flat.heads}
    return insert(node, "RotaryEmbedding", [value, *turning.inputs[1:]], attributes, axes=axes, like=value)


# ---- heads of keys and values that serve several heads of queries are not copied for them
#
# Attention takes fewer heads of keys and values than of queries. Models that repeat them by hand write an Unsqueeze, an
# Expand and a Reshape for each.

_KEY, _VALUE = 1, 2
_HEADS = 1


def share_repeated_heads(graph: ir.Graph, sizes: Sizes) -> None:
    """Give keys and values to Attention as they are before they are repeated."""
    for node in nodes_of(graph, "Attention"):
        key, value = (_before_repetition(node.inputs[place], sizes) for place in (_KEY, _VALUE))
        if key and value and (sizes.of(key) or ())[_HEADS] == (sizes.of(value) or ())[_HEADS]:
            node.replace_input_with(_KEY, key)
            node.replace_input_with(_VALUE, value)


def _before_repetition(value: ir.Value | None, sizes: Sizes) -> ir.Value | None:
    """What Reshape(Expand(Unsqueeze(x, 2))) repeats: [b, h, n, d] to [b, h, times, n, d] to [b, h * times, n, d]."""
    joined = maker(value, "Reshape")
    copied = maker(first_input(joined), "Expand") if joined is not None else None
    widened = maker(first_input(copied), "Unsqueeze") if copied is not None else None
    if copied is None or widened is None or whole_numbers(widened.inputs[1]) != (2,):
        return None
    few = first_input(widened)
    known, repeated, whole = sizes.all_of(few), sizes.all_of(copied.outputs[0]), sizes.all_of(value)
    if known is None or repeated is None or len(known) != 4:
        return None
    batch, heads, length, features = known
    times = repeated[2]
    if not isinstance(heads, int) or not isinstance(times, int):
        return None
    is_it = repeated == (batch, heads, times, length, features) and whole == (batch, heads * times, length, features)
    return few if is_it else None


# ---- a view of all rows, a Transpose and a second view become one view and one Transpose
#
# `nn.MultiheadAttention` views [positions, batch, features] as [positions, batch * heads, features of a head], moves
# the positions behind, and views that as [batch, heads, positions, features of a head].

_SWAPPED = (1, 0, 2)
_APART = (1, 2, 0, 3)


def view_heads_once(graph: ir.Graph, sizes: Sizes) -> None:
    """Reshape(Transpose(Reshape(x))) of that form becomes Transpose(Reshape(x))."""
    for node in nodes_of(graph, "Reshape"):
        moved = maker(node.inputs[0], "Transpose")
        rows = maker(first_input(moved), "Reshape") if moved is not None else None
        if moved is None or rows is None or permutation(moved) != _SWAPPED:
            continue
        plain, viewed, wanted = (sizes.all_of(v) for v in (first_input(rows), rows.outputs[0], node.outputs[0]))
        if plain is None or viewed is None or wanted is None or len(plain) != 3 or len(wanted) != 4:
            continue
        positions, batch, features = plain
        _, heads, _, head = wanted
        fits = wanted == (batch, heads, positions, head) and (viewed[0], viewed[2]) == (positions, head)
        if not fits or not isinstance(heads, int) or not isinstance(head, int) or heads * head != features:
            continue
        axes = (positions, batch, heads, head)
        view = reshaped(node, first_input(rows), axes, sizes)
        if view is not None:
            replace(node.outputs[0], transposed(node, view, _APART, axes))


# ---- two Transposes that undo each other, with nothing between them that looks at the order of rows, are left out
#
# A product with a matrix, a bias of one axis and a Split of the last axis treat all rows the same: whether positions or
# the batch come first makes no difference to them.


def cancel_transposes(graph: ir.Graph, sizes: Sizes) -> None:
    for node in nodes_of(graph, "Transpose"):
        if permutation(node) == _SWAPPED and not node.outputs[0].is_graph_output():
            _cancel_after_row_by_row(node, sizes) or _cancel_after_rows(node, sizes)


def _cancel_after_row_by_row(first: ir.Node, sizes: Sizes) -> bool:
    """Transpose, then nodes that take row by row, then Transposes of all that comes out of them."""
    chain: list[ir.Node] = []
    value = first.outputs[0]
    while (node := only_user(value, "MatMul", "Add", "Split")) is not None and _takes_rows(node, value, sizes):
        chain.append(node)
        if node.op_type == "Split":
            break
        value = node.outputs[0]
    results = chain[-1].outputs if chain else ()
    ends = [user for result in results for user in users(result)]
    returned = any(result.is_graph_output() for result in results)
    if not ends or returned or not all(is_op(end, "Transpose") and permutation(end) == _SWAPPED for end in ends):
        return False
    chain[0].replace_input_with(list(chain[0].inputs).index(first.outputs[0]), first_input(first))
    for result in (result for node in chain for result in node.outputs):
        known = sizes.of(result)
        result.shape = None if known is None else ir.Shape([known[1], known[0], known[2]])
    for end in ends:
        replace(end.outputs[0], first_input(end))
    return True


def _takes_rows(node: ir.Node, rows: ir.Value, sizes: Sizes) -> bool:
    others = [value for value in node.inputs if value is not rows]
    axes = len(sizes.of(others[0]) or ()) if len(others) == 1 else None
    if node.op_type == "MatMul":
        return node.inputs[0] is rows and axes == 2
    if node.op_type == "Add":
        return axes == 1
    return node.attributes.get_int("axis", 0) in (2, -1)


def _cancel_after_rows(first: ir.Node, sizes: Sizes) -> bool:
    """Transpose, all rows as one axis, a Gemm, the rows apart again, Transpose."""
    flat = only_user(first.outputs[0], "Reshape")
    product = only_user(flat.outputs[0], "Gemm") if flat is not None else None
    apart = only_user(product.outputs[0], "Reshape") if product is not None else None
    last = only_user(apart.outputs[0], "Transpose") if apart is not None else None
    if flat is None or product is None or apart is None or last is None or permutation(last) != _SWAPPED:
        return False
    before, rows, after = sizes.all_of(first_input(first)), sizes.of(flat.outputs[0]), sizes.all_of(last.outputs[0])
    takes_rows = product.inputs[0] is flat.outputs[0] and product.attributes.get_int("transA", 0) == 0
    bias = sizes.of(product.inputs[2]) if len(product.inputs) > 2 else ()
    if before is None or rows is None or after is None or bias is None or not takes_rows or len(bias) > 1:
        return False
    if len(rows) != 2 or rows[1] != before[2] or after[:2] != before[:2]:
        return False
    result = reshaped(last, product.outputs[0], after, sizes)
    if result is None:
        return False
    flat.replace_input_with(0, first_input(first))
    replace(last.outputs[0], result)
    return True
