"""Sums of products: MatMul, Gemm, Einsum, convolutions. Axes that are summed over against weights cannot be freed."""

from __future__ import annotations

import onnx_ir as ir

from anyshape.freeing.constant_patterns import is_uniform
from anyshape.freeing.growth import grow_fixed, grow_input
from anyshape.freeing.rules.broadcast import align
from anyshape.freeing.walk import Rule, Shapes, Walk, einsum_terms
from anyshape.onnxfile.graph import attribute
from anyshape.sizes.expressions import Size, is_number, spelled


def matmul(walk: Walk, node: ir.Node) -> Shapes:
    places = (0, 3) if node.op_type == "QLinearMatMul" else (0, 1)
    left, right = (walk.shape(node.inputs[place]) for place in places)
    if left is None or right is None or not left or not right:
        return None
    if len(left) > 2 or len(right) > 2:
        align(walk, node, places, last=2)
    _fit_summed_axes(walk, node, (places[0], len(left) - 1), (places[1], max(len(right) - 2, 0)))
    return None


def gemm(walk: Walk, node: ir.Node) -> Shapes:
    left = 0 if attribute(node, "transA", 0) else 1
    right = 1 if attribute(node, "transB", 0) else 0
    _fit_summed_axes(walk, node, (0, left), (1, right))
    _grow_bias(walk, node, left)
    return None


def _grow_bias(walk: Walk, node: ir.Node, summed: int) -> None:
    """The bias of Gemm has as many rows as the result, or one."""
    data, bias = walk.shape(node.inputs[0]), walk.shape(node.inputs[2]) if len(node.inputs) > 2 else None
    if data is not None and bias is not None and len(bias) == 2:
        grow_fixed(walk, node, 2, {0: data[1 - summed]}, broadcasts=True)


def _fit_summed_axes(walk: Walk, node: ir.Node, *ends: tuple[int, int]) -> None:
    """Both operands of a sum have one size: a fixed one beside a free one pins it."""
    (a, i), (b, j) = ends
    for (place, axis), (other, across) in (((a, i), (b, j)), ((b, j), (a, i))):
        free, fixed = walk.shape(node.inputs[place]), walk.shape(node.inputs[other])
        if free and fixed and walk.is_free(free[axis]) and is_number(fixed[across]):
            _grow_or_refuse(walk, node, other, across, free[axis])


def _grow_or_refuse(walk: Walk, node: ir.Node, place: int, axis: int, size: Size) -> None:
    """What is the same all along the axis grows with it, weights do not: their further rows were never trained."""
    value = node.inputs[place]
    assert value is not None
    array = walk.constant(value)
    computed = array is None and value.const_value is None and value.producer() is not None
    if computed or (array is not None and is_uniform(array, axis)):
        grow_input(walk, node, place, {axis: size}, broadcasts=False)
        return
    n = (walk.shape(value) or ())[axis]
    why = f"it sums over `{spelled(size)}` with `{value.name}`, which has {n} on axis {axis}"
    raise walk.pinned(node, why, size)


def einsum(walk: Walk, node: ir.Node) -> Shapes:
    """A letter that is free in one operand is so in all."""
    terms = (einsum_terms(node) or [])[:-1]
    if not terms:
        return None
    sizes: dict[str, Size] = {}
    for term, value in zip(terms, node.inputs, strict=True):
        for letter, size in zip(term, walk.shape(value) or (), strict=False):
            if walk.is_free(size):
                sizes.setdefault(letter, size)
    for place, term in enumerate(terms):
        wants = {axis: sizes[letter] for axis, letter in enumerate(term) if letter in sizes}
        grow_fixed(walk, node, place, wants, broadcasts=True)
    return None


def channels(walk: Walk, node: ir.Node) -> Shapes:
    """Weights belong to the channels on axis 1."""
    shape = walk.shape(node.inputs[0])
    weights = node.inputs[3 if node.op_type == "QLinearConv" else 1]
    if shape is not None and len(shape) > 1 and walk.is_free(shape[1]) and weights is not None:
        why = f"`{spelled(shape[1])}` are the channels of the weights `{weights.name}`"
        raise walk.pinned(node, why, shape[1])
    return None


RULES: dict[str, Rule] = {
    **dict.fromkeys(("MatMul", "MatMulInteger", "QLinearMatMul"), matmul),
    **dict.fromkeys(("Conv", "ConvTranspose", "ConvInteger", "QLinearConv", "BatchNormalization"), channels),
    "InstanceNormalization": channels,
    "Gemm": gemm,
    "Einsum": einsum,
}
