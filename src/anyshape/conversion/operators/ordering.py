"""Sorting, medians, extremes and searching in sorted values, by ONNX's TopK and by comparing.

TopK keeps the order of equal values, in both directions, so a stable sort is a TopK of everything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir

from anyshape.conversion.operators.onnx_words import (
    BOOL,
    DOUBLE,
    FLOAT,
    INT64,
    as_vector,
    from_front,
    number,
    op,
    rank,
    size_of,
    whole,
)

_INT32 = ir.DataType.INT32
_SORTABLE = {FLOAT, DOUBLE, _INT32, INT64, ir.DataType.FLOAT16}
"""What ONNX Runtime's TopK takes."""


def _with_axis(x: ir.Value) -> ir.Value:
    flat: ir.Value = op.Reshape(x, whole(1)) if rank(x) == 0 else x
    return flat


def _first_in_order(x: ir.Value, count: Any, axis: int, *, largest: bool) -> tuple[Any, Any]:
    """Values and places in order; types that ONNX Runtime does not sort are sorted as int32."""
    if x.dtype in _SORTABLE or x.dtype is None:
        values, places = op.TopK(x, count, axis=axis, largest=int(largest), sorted=1)
        return values, places
    values, places = op.TopK(op.Cast(x, to=_INT32), count, axis=axis, largest=int(largest), sorted=1)
    return op.Cast(values, to=x.dtype), places


def _sort(x: ir.Value, *, stable: bool | None = None, dim: int = -1, descending: bool = False) -> tuple[Any, Any]:
    del stable  # it always is
    axis = from_front(dim, x)
    flat = _with_axis(x)
    values, places = _first_in_order(flat, size_of(flat, axis), axis, largest=descending)
    if rank(x) == 0:
        return op.Identity(x), op.Reshape(places, whole())
    return values, places


def _kth_value(x: ir.Value, k: int | ir.Value, dim: int = -1, keepdim: bool = False) -> tuple[Any, Any]:
    if rank(x) == 0:
        return op.Identity(x), op.Constant(value=ir.tensor(0, dtype=INT64))
    axis = from_front(dim, x)
    found = _first_in_order(x, as_vector(k), axis, largest=False)
    last = [op.Slice(values, whole(-1), whole(2**62), whole(axis)) for values in found]
    if keepdim:
        return last[0], last[1]
    return op.Squeeze(last[0], whole(axis)), op.Squeeze(last[1], whole(axis))


def _place_of_median(x: ir.Value, axis: int) -> Any:
    """Of an even number of values, torch takes the lower of the two in the middle."""
    return op.Div(op.Add(size_of(x, axis), whole(1)), whole(2))


def _median(x: ir.Value, dim: int = -1, keepdim: bool = False) -> tuple[Any, Any]:
    return _kth_value(x, _place_of_median(x, from_front(dim, x)) if rank(x) else 1, dim, keepdim)


def _median_of_all(x: ir.Value) -> Any:
    flat = op.Reshape(x, whole(-1))
    values, _ = op.TopK(flat, _place_of_median(flat, 0), axis=0, largest=0, sorted=1)
    return op.Squeeze(op.Slice(values, whole(-1), whole(2**62), whole(0)), whole(0))


def _nan_median(x: ir.Value, dim: int = -1, keepdim: bool = False) -> tuple[Any, Any]:
    """NaNs are sorted to the end; the middle is that of the others, and NaN where there are none."""
    axis = from_front(dim, x)
    missing = op.IsNaN(x)
    filled = op.Where(missing, number(float("inf"), x), x)
    values, places = op.TopK(filled, size_of(x, axis), axis=axis, largest=0, sorted=1)
    there = op.ReduceSum(op.Cast(op.Not(missing), to=INT64), whole(axis), keepdims=1)
    middle = op.Div(op.Max(op.Sub(there, whole(1)), whole(0)), whole(2))
    value = op.Where(op.Equal(there, whole(0)), number(float("nan"), x), op.GatherElements(values, middle, axis=axis))
    place = op.GatherElements(places, middle, axis=axis)
    if keepdim:
        return value, place
    return op.Squeeze(value, whole(axis)), op.Squeeze(place, whole(axis))


def _number_before(
    sequence: ir.Value, values: ir.Value, *, out_int32: bool = False, right: bool = False, side: str | None = None,
    sorter: ir.Value | None = None, many: int | None = None,
) -> Any:  # fmt: skip
    """How many of the sorted values stand before each value: those that are smaller, or not larger."""
    if sorter is not None:
        sequence = op.GatherElements(sequence, sorter, axis=-1)
    before = op.LessOrEqual if right or side == "right" else op.Less
    compared = before(op.Unsqueeze(sequence, whole(-2)), op.Unsqueeze(values, whole(-1)))
    if many == 0:
        compared = before(sequence, values)
    counted = op.ReduceSum(op.Cast(compared, to=INT64), whole(-1), keepdims=0)
    return op.Cast(counted, to=_INT32) if out_int32 else counted


def _place_in_sorted(sequence: ir.Value, values: Any, **options: Any) -> Any:
    if not isinstance(values, ir.Value):
        return _number_before(sequence, number(values, sequence), many=0, **options)
    return _number_before(sequence, values, many=rank(values), **options)


def _place_among(values: Any, boundaries: ir.Value, **options: Any) -> Any:
    return _place_in_sorted(boundaries, values, **options)


def _is_in(values: ir.Value, wanted: ir.Value, *, assume_unique: bool = False, invert: bool = False) -> Any:
    del assume_unique
    equal = op.Equal(op.Unsqueeze(values, whole(-1)), op.Reshape(wanted, whole(-1)))
    found = op.Greater(op.ReduceSum(op.Cast(equal, to=INT64), whole(-1), keepdims=0), whole(0))
    found = op.Reshape(found, op.Shape(values))
    return op.Not(found) if invert else found


def _extreme(reduce: Callable[..., Any]) -> Callable[..., Any]:
    """Along some axes; along all where none is named."""

    def translate(x: ir.Value, dim: Sequence[int] = (), keepdim: bool = False) -> Any:
        if rank(x) == 0:
            return op.Identity(x)
        axes = dim or range(rank(x))
        numbers = op.Cast(x, to=_INT32) if x.dtype == BOOL else x
        result = reduce(numbers, whole(*(from_front(axis, x) for axis in axes)), keepdims=keepdim)
        return op.Cast(result, to=BOOL) if x.dtype == BOOL else result

    return translate


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "aten::amax": _extreme(op.ReduceMax),
    "aten::amin": _extreme(op.ReduceMin),
    "aten::sort.stable": _sort,
    "aten::kthvalue": _kth_value,
    "aten::median.dim": _median,
    "aten::median": _median_of_all,
    "aten::nanmedian.dim": _nan_median,
    "aten::searchsorted.Tensor": _place_in_sorted,
    "aten::searchsorted.Scalar": _place_in_sorted,
    "aten::bucketize.Tensor": _place_among,
    "aten::bucketize.Scalar": _place_among,
    "aten::isin.Tensor_Tensor": _is_in,
}
