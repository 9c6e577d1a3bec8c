"""Twins: the same node on grown inputs, beside the node that it is a twin of."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from anyshape.freeing.constant_patterns import is_uniform, ramp_step
from anyshape.freeing.families import ELEMENTWISE, axes_of, broadcast, einsum_terms
from anyshape.freeing.growth import Wants, grown, sliced
from anyshape.freeing.preparation import is_standard
from anyshape.freeing.walk import Walk, attribute
from anyshape.sizes.expressions import Shape, Size, is_number, number, product

Pushed = ir.Value | None
"""The grown output of a twin; None where the node is not understood."""
PushBack = Callable[[Walk, ir.Node, Wants], Pushed]


def again(walk: Walk, node: ir.Node, inputs: Sequence[ir.Value | None], shape: Shape) -> ir.Value:
    """The same node on other inputs."""
    twin = ir.node(node.op_type, list(inputs), attributes=dict(node.attributes), domain=node.domain)
    return walk.builder.insert(twin, shape, node.outputs[0].dtype)


def input_grown(walk: Walk, node: ir.Node, wants: Wants, place: int = 0) -> ir.Value:
    value = node.inputs[place]
    assert value is not None
    return grown(walk, node, value, wants, broadcasts=True)


def after(walk: Walk, node: ir.Node, new: ir.Value, wants: Wants, inner: Wants) -> Shape:
    """The node's shape, with what became of the input's grown axes; `wants` and `inner` list them in the same order."""
    shape, sizes = list(walk.shape(node.outputs[0]) or ()), walk.shape(new) or ()
    for axis, source in zip(wants, inner, strict=True):
        shape[axis] = sizes[source]
    return tuple(shape)


def moved(walk: Walk, node: ir.Node, wants: Wants, source: Callable[[int], int | None]) -> Pushed:
    """For nodes whose output axes are those of their first input, each elsewhere."""
    inner: dict[int, Size] = {}
    for axis, size in wants.items():
        place = source(axis)
        if place is None:
            return None
        inner[place] = size
    new = input_grown(walk, node, inner)
    return again(walk, node, [new, *node.inputs[1:]], after(walk, node, new, wants, inner))


def _elementwise(walk: Walk, node: ir.Node, wants: Wants) -> Pushed:
    rank = len(walk.shape(node.outputs[0]) or ())
    inputs: list[ir.Value | None] = []
    for value in node.inputs:
        shape = walk.shape(value)
        if value is None or shape is None:
            inputs.append(value)
            continue
        shift = rank - len(shape)
        own = {axis - shift: size for axis, size in wants.items() if axis >= shift and shape[axis - shift] != 1}
        inputs.append(grown(walk, node, value, own, broadcasts=True))
    return again(walk, node, inputs, broadcast([walk.shape(v) or () for v in inputs if v is not None]))


def _transpose(walk: Walk, node: ir.Node, wants: Wants) -> Pushed:
    rank = len(walk.shape(node.outputs[0]) or ())
    order = attribute(node, "perm") or list(range(rank))[::-1]
    return moved(walk, node, wants, lambda axis: int(order[axis]))


def _unsqueeze(walk: Walk, node: ir.Node, wants: Wants) -> Pushed:
    added = axes_of(walk, node, len(walk.shape(node.outputs[0]) or ()))
    if added is None:
        return None
    return moved(walk, node, wants, lambda axis: None if axis in added else axis - sum(a < axis for a in added))


def _squeeze(walk: Walk, node: ir.Node, wants: Wants) -> Pushed:
    shape = walk.shape(node.inputs[0]) or ()
    dropped = axes_of(walk, node, len(shape))
    if dropped is None:
        dropped = [axis for axis, size in enumerate(shape) if size == 1]
    kept = [axis for axis in range(len(shape)) if axis not in dropped]
    return moved(walk, node, wants, lambda axis: kept[axis])


def _kept_axes(walk: Walk, node: ir.Node, wants: Wants) -> Pushed:
    """Reductions that keep their axes, and normalisations: every other axis passes."""
    rank = len(walk.shape(node.inputs[0]) or ())
    worked = axes_of(walk, node, rank)
    if node.op_type.startswith("Reduce") and not attribute(node, "keepdims", 1):
        return None
    if node.op_type == "LayerNormalization":
        worked = list(range(int(attribute(node, "axis", -1)) % rank, rank))
    if node.op_type in ("Softmax", "LogSoftmax"):
        worked = [int(attribute(node, "axis", -1)) % rank]
    return moved(walk, node, wants, lambda axis: None if worked is None or axis in worked else axis)


def _same_axes(walk: Walk, node: ir.Node, wants: Wants) -> Pushed:
    return moved(walk, node, wants, lambda axis: axis)


def _reshape(walk: Walk, node: ir.Node, wants: Wants) -> Pushed:
    """Axes that only move, because sizes of 1 come or go."""
    data, out = walk.shape(node.inputs[0]), walk.shape(node.outputs[0])
    if data is None or out is None:
        return None
    inner: dict[int, Size] = {}
    for axis, size in wants.items():
        before = product(out[:axis])
        same = [i for i, s in enumerate(data) if s == out[axis] and product(data[:i]) == before]
        if not same:
            return None
        inner[same[0]] = size
    new = input_grown(walk, node, inner)
    shape = after(walk, node, new, wants, inner)
    return again(walk, node, [new, walk.builder.vector(shape)], shape)


def _matmul(walk: Walk, node: ir.Node, wants: Wants) -> Pushed:
    """Rows of the first matrix, which pass through."""
    left, out = walk.shape(node.inputs[0]), walk.shape(node.outputs[0])
    right = walk.shape(node.inputs[1])
    if left is None or right is None or out is None or len(left) != len(out) or len(right) > 2:
        return None
    return moved(walk, node, wants, lambda axis: axis if axis < len(out) - 1 else None)


def _einsum(walk: Walk, node: ir.Node, wants: Wants) -> Pushed:
    """Letters of the result: every operand that has one of them grows along it."""
    terms = einsum_terms(node)
    if terms is None:
        return None
    *operands, result = terms
    sizes = {result[axis]: size for axis, size in wants.items()}
    inputs: list[ir.Value | None] = []
    for term, value in zip(operands, node.inputs, strict=True):
        own = {axis: sizes[letter] for axis, letter in enumerate(term) if letter in sizes}
        inputs.append(None if value is None else grown(walk, node, value, own, broadcasts=False))
    shape = tuple(wants.get(axis, size) for axis, size in enumerate(walk.shape(node.outputs[0]) or ()))
    return again(walk, node, inputs, shape)


AXIS_RULES: dict[str, PushBack] = {
    **dict.fromkeys(ELEMENTWISE, _elementwise),
    **dict.fromkeys(("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin"), _kept_axes),
    **dict.fromkeys(("Softmax", "LogSoftmax", "LayerNormalization"), _kept_axes),
    **dict.fromkeys(("CumSum", "Trilu", "QuantizeLinear", "DequantizeLinear"), _same_axes),
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
    "Squeeze": _squeeze,
    "Reshape": _reshape,
    "MatMul": _matmul,
    "Einsum": _einsum,
}


def _expand(walk: Walk, node: ir.Node, wants: Wants) -> Pushed:
    target, data = walk.numbers(node.inputs[1]), walk.shape(node.inputs[0])
    out = walk.shape(node.outputs[0])
    if target is None or data is None or out is None:
        return None
    shift, lead = len(out) - len(data), len(out) - len(target)
    inner = {a - shift: s for a, s in wants.items() if a >= shift and data[a - shift] != 1}
    new = input_grown(walk, node, inner)
    goal = [wants.get(axis + lead, size) for axis, size in enumerate(target)]
    shape = tuple(wants.get(axis, size) for axis, size in enumerate(out))
    return again(walk, node, [new, walk.builder.vector(goal)], shape)


def _tile(walk: Walk, node: ir.Node, wants: Wants) -> Pushed:
    repeats, data = walk.constant(node.inputs[1]), walk.shape(node.inputs[0])
    if repeats is None or data is None:
        return None
    if any(repeats[axis] != 1 and data[axis] != 1 for axis in wants):
        return None
    inner = {axis: size for axis, size in wants.items() if data[axis] != 1}
    new = input_grown(walk, node, inner)
    times = [wants[a] if a in wants and data[a] == 1 else number(n) for a, n in enumerate(repeats)]
    shape = tuple(wants.get(axis, size) for axis, size in enumerate(walk.shape(node.outputs[0]) or ()))
    sizes = walk.shape(new) or ()
    times = [wants[a] if a in wants and sizes[a] == 1 else n for a, n in enumerate(times)]
    return again(walk, node, [new, walk.builder.vector(times)], shape)


def _concat(walk: Walk, node: ir.Node, wants: Wants) -> Pushed:
    rank = len(walk.shape(node.outputs[0]) or ())
    if int(attribute(node, "axis", 0)) % rank in wants:
        return None
    inputs = [None if v is None else grown(walk, node, v, wants, broadcasts=False) for v in node.inputs]
    shape = tuple(wants.get(axis, size) for axis, size in enumerate(walk.shape(node.outputs[0]) or ()))
    return again(walk, node, inputs, shape)


def _gather(walk: Walk, node: ir.Node, wants: Wants) -> Pushed:
    """Axes of the output: those of the table before its indexed axis, those of the index, the rest of the table."""
    table, index = walk.shape(node.inputs[0]), walk.shape(node.inputs[1])
    if table is None or index is None:
        return None
    axis = int(attribute(node, "axis", 0)) % len(table)
    of_index = {a - axis: s for a, s in wants.items() if axis <= a < axis + len(index)}
    of_table = {a if a < axis else a - len(index) + 1: s for a, s in wants.items() if a - axis not in of_index}
    data, where = input_grown(walk, node, of_table), input_grown(walk, node, of_index, 1)
    new, places = walk.shape(data) or (), walk.shape(where) or ()
    result = again(walk, node, [data, where], (*new[:axis], *places, *new[axis + 1 :]))
    if is_number(table[axis]):
        _bound_rows(walk, node, int(table[axis]), of_index, result)
    return result


def _gather_elements(walk: Walk, node: ir.Node, wants: Wants) -> Pushed:
    """The output has the shape of the index, and the data has it, too, but for the axis that is indexed."""
    data = walk.shape(node.inputs[0])
    if data is None:
        return None
    own = int(attribute(node, "axis", 0)) % len(data)
    others = {axis: size for axis, size in wants.items() if axis != own and is_number(data[axis])}
    inputs: list[ir.Value | None] = []
    for value, part in zip(node.inputs, (others, wants), strict=True):
        inputs.append(None if value is None else grown(walk, node, value, part, broadcasts=False))
    return again(walk, node, inputs, walk.shape(inputs[1]) or ())


def _bound_rows(walk: Walk, node: ir.Node, rows: int, wants: Wants, result: ir.Value) -> None:
    """A ramp of indices comes to the end of the table."""
    index = walk.constant(node.inputs[1])
    if index is None:
        return
    for axis, size in wants.items():
        step = None if is_uniform(index, axis) else ramp_step(index, axis)
        if step is not None:
            name = node.inputs[0].name if node.inputs[0] is not None else "?"
            first = int(np.take(index, 0, axis).max())
            most = rows - first if (step == 1).all() and index.min() >= 0 else index.shape[axis]
            walk.bound(size, most, f"the table `{name}` has {rows} rows", result)


def _slice(walk: Walk, node: ir.Node, wants: Wants) -> Pushed:
    """A part of a longer table: a larger part of it."""
    if walk.opset < 10:
        return None
    data, starts, ends = node.inputs[0], walk.constant(node.inputs[1]), walk.constant(node.inputs[2])
    shape = walk.shape(data)
    if data is None or shape is None or starts is None or ends is None:
        return None
    axes = axes_of(walk, node, len(shape), 3)
    axes = list(range(len(starts))) if axes is None else axes
    steps = walk.constant(node.inputs[4]) if len(node.inputs) > 4 else None
    if steps is not None and any(steps != 1):
        return None
    passed = {a: s for a, s in wants.items() if a not in axes}
    source = input_grown(walk, node, passed)
    parts: dict[int, tuple[Size, Size]] = {}
    limits: dict[int, tuple[int, int]] = {}
    result = list(walk.shape(source) or ())
    for axis, start, end in zip(axes, starts, ends, strict=True):
        rows = result[axis]
        if axis in wants and is_number(rows):
            first = min(int(start) % int(rows) if start < 0 else int(start), int(rows))
            limits[axis] = (int(rows) - first, int(rows))
            parts[axis], result[axis] = (number(first), first + wants[axis]), wants[axis]
        else:
            parts[axis] = (number(start), number(end))
            result[axis] = (walk.shape(node.outputs[0]) or ())[axis]
    new = sliced(walk, source, parts, tuple(result))
    for axis, (most, rows) in limits.items():
        walk.bound(wants[axis], most, f"the table `{data.name}` has {rows} rows", new)
    return new


TABLE_RULES: dict[str, PushBack] = {
    "Expand": _expand,
    "Tile": _tile,
    "Concat": _concat,
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "Slice": _slice,
}

_RULES = {**AXIS_RULES, **TABLE_RULES}


def grown_backwards(walk: Walk, value: ir.Value, wants: Wants) -> Pushed:
    """The value with these sizes (or 1 where it is uniform along the axis); None where its origin is not understood."""
    node = value.producer()
    assert node is not None
    rule = _RULES.get(node.op_type)
    if rule is None or not is_standard(node) or node.outputs[0] is not value:
        return None
    return rule(walk, node, wants)
