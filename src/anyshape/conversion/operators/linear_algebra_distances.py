"""Distances between all rows of two sets (`torch.cdist`) or of one (`F.pdist`).

Euclidean distances come from products, in double: of two equal rows the difference of large squares would not be 0 in
float32, and all differences at once would take the memory of both sets times the features. Other norms need them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import onnx_ir as ir

from anyshape.conversion.operators.onnx_words import op
from anyshape.conversion.operators.onnx_words_shapes import DOUBLE, counted, number, rank, size_of, whole


def _distances(left: ir.Value, right: ir.Value, p: float, compute_mode: int | None = None) -> Any:
    del compute_mode  # how torch computes it, not what
    if p == 2:
        return _euclidean(left, right)
    gaps = op.Abs(op.Sub(op.Unsqueeze(left, whole(-2)), op.Unsqueeze(right, whole(-3))))
    if p == 0:
        return op.ReduceSum(op.CastLike(op.Greater(gaps, number(0, left)), left), whole(-1), keepdims=0)
    if p == 1:
        return op.ReduceSum(gaps, whole(-1), keepdims=0)
    if math.isinf(p):
        return op.ReduceMax(gaps, whole(-1), keepdims=0)
    powers = op.ReduceSum(op.Pow(gaps, number(p, left)), whole(-1), keepdims=0)
    return op.Pow(powers, number(1 / p, left))


def _euclidean(left: ir.Value, right: ir.Value) -> Any:
    x, y = op.Cast(left, to=DOUBLE), op.Cast(right, to=DOUBLE)
    axes = max(rank(left), rank(right))
    flipped = [*range(axes - 2), axes - 1, axes - 2]
    if rank(right) < axes:
        y = op.Unsqueeze(y, whole(*range(axes - rank(right))))
    squares = op.ReduceSum(op.Mul(x, x), whole(-1), keepdims=1)
    others = op.Transpose(op.ReduceSum(op.Mul(y, y), whole(-1), keepdims=1), perm=flipped)
    products = op.MatMul(x, op.Transpose(y, perm=flipped))
    two, zero = (op.Constant(value=ir.tensor(value, dtype=DOUBLE)) for value in (2.0, 0.0))
    squared = op.Sub(op.Add(squares, others), op.Mul(two, products))
    return op.CastLike(op.Sqrt(op.Max(squared, zero)), left)


def _distances_within(x: ir.Value, p: float = 2.0) -> Any:
    """Each pair once: what stands above the diagonal, row by row."""
    index = counted(size_of(x, 0))
    above = op.Less(op.Unsqueeze(index, whole(1)), op.Unsqueeze(index, whole(0)))
    flat = op.Reshape(_distances(x, x, p), whole(-1))
    return op.Compress(flat, op.Reshape(above, whole(-1)), axis=0)


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "aten::_cdist_forward": _distances,
    "aten::_pdist_forward": _distances_within,
}
