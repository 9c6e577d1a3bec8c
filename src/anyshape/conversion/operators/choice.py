"""What is chosen by values, so that its size is known only at run time: masked values, counts, places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir

from anyshape.conversion.operators.onnx_words import op
from anyshape.conversion.operators.onnx_words_shapes import (
    DOUBLE,
    FLOAT,
    INT64,
    as_vector,
    from_front,
    rank,
    size_of,
    vector,
    whole,
)


def _masked_select(x: ir.Value, mask: ir.Value) -> Any:
    """Both are broadcast against each other, then the values under the mask are taken row by row."""
    together = op.Shape(op.Expand(mask, op.Shape(x)))
    flat = op.Reshape(op.Expand(x, together), whole(-1))
    return op.Compress(flat, op.Reshape(op.Expand(mask, together), whole(-1)), axis=0)


def _places_in_fixed_number(x: ir.Value, *, size: int | ir.Value, fill_value: int = -1) -> Any:
    """As many rows as asked for, cut off or filled up."""
    truth = op.Cast(x, to=ir.DataType.BOOL)
    found = op.Transpose(op.NonZero(truth), perm=[1, 0])
    shape = op.Concat(as_vector(size), whole(rank(x)), axis=0)
    filler = op.Expand(op.Constant(value=ir.tensor(fill_value, dtype=INT64)), shape)
    return op.Slice(op.Concat(found, filler, axis=0), whole(0), as_vector(size), whole(0))


def _count(x: ir.Value, weights: ir.Value | None = None, minlength: int | ir.Value = 0) -> Any:
    """How often each number from 0 to the largest stands there, or the sum of its weights."""
    places = op.Cast(x, to=INT64)
    last = op.ReduceMax(op.Concat(places, whole(-1), axis=0), whole(0), keepdims=1)
    length = op.Max(op.Add(last, whole(1)), as_vector(minlength))
    dtype = INT64 if weights is None else FLOAT if weights.dtype == FLOAT else DOUBLE
    zeros = op.ConstantOfShape(length, value=ir.tensor([0], dtype=dtype))
    if weights is None:
        weights = op.ConstantOfShape(op.Shape(x), value=ir.tensor([1], dtype=INT64))
    return op.ScatterElements(zeros, places, op.Cast(weights, to=dtype), axis=0, reduction="add")


def _repeat(x: ir.Value, repeats: int | ir.Value, dim: int | None = None, *, output_size: Any = None) -> Any:
    """Each slice along an axis as often as one number says; without an axis, each value."""
    del output_size
    if dim is None or rank(x) == 0:
        flat = op.Reshape(x, whole(-1, 1))
        shape = op.Concat(op.Shape(flat, start=0, end=1), as_vector(repeats), axis=0)
        return op.Reshape(op.Expand(flat, shape), whole(-1))
    axis, axes = from_front(dim, x), rank(x)
    before, after = [size_of(x, a) for a in range(axis + 1)], [size_of(x, a) for a in range(axis + 1, axes)]
    spread = op.Expand(op.Unsqueeze(x, whole(axis + 1)), vector([*before, repeats, *after]))
    longer = op.Mul(before.pop(), as_vector(repeats))
    return op.Reshape(spread, vector([*before, longer, *after]), allowzero=1)


def _are_all_true(x: ir.Value) -> Any:
    """Of no values, yes."""
    failing = op.ReduceSum(op.Cast(op.Not(x), to=INT64), keepdims=0)
    return op.Equal(failing, op.Constant(value=ir.tensor(0, dtype=INT64)))


def _is_any_true(x: ir.Value) -> Any:
    holding = op.ReduceSum(op.Cast(x, to=INT64), keepdims=0)
    return op.Greater(holding, op.Constant(value=ir.tensor(0, dtype=INT64)))


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "aten::_is_all_true": _are_all_true,
    "aten::_is_any_true": _is_any_true,
    "aten::masked_select": _masked_select,
    "aten::nonzero_static": _places_in_fixed_number,
    "aten::bincount": _count,
    "aten::repeat_interleave.self_int": _repeat,
}
