"""Nodes whose axes are those of their operands, in place or moved: growth goes to the same axis there."""

from __future__ import annotations

import onnx_ir as ir

from anyshape.freeing.families import ELEMENTWISE, axes_of, broadcast, einsum_terms
from anyshape.freeing.growth import grown
from anyshape.freeing.growth_formulas import Wants
from anyshape.freeing.push import PushBack, Pushed, after, again, input_grown, moved
from anyshape.freeing.walk import Walk, attribute
from anyshape.sizes.expressions import Size, product


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


RULES: dict[str, PushBack] = {
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
