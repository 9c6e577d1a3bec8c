"""What is chosen by values, so that its size is known only at run time: masked values, counts, places."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import onnx_ir as ir
import torch
from torch import Tensor

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
    vector,
    whole,
)
from anyshape.conversion.operators.repair import Answer, Repair, Used, answered


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


@contextlib.contextmanager
def _apply(used: Used) -> Iterator[None]:
    def equal(input: Tensor, other: Tensor) -> bool:  # noqa: A002
        used("torch.equal: compared in the file")
        return input.shape == other.shape and bool((input == other).all())

    def allclose(
        input: Tensor,  # noqa: A002
        other: Tensor,
        rtol: float = 1e-5,
        atol: float = 1e-8,
        equal_nan: bool = False,
    ) -> bool:
        used("torch.allclose: compared in the file")
        return bool(torch.isclose(input, other, rtol, atol, equal_nan).all())

    def is_nonzero(input: Tensor) -> bool:  # noqa: A002
        used("torch.is_nonzero: asked in the file")
        return bool(input.reshape(()) != 0)

    kinds: dict[str, Answer] = {"equal": equal, "allclose": allclose, "is_nonzero": is_nonzero}
    with answered({(owner, name): answer for owner in (torch, Tensor) for name, answer in kinds.items()}):
        yield


COMPARISONS = Repair("comparisons", _apply)

_SORTABLE = {ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.INT32, ir.DataType.INT64, ir.DataType.FLOAT16}
_INT32 = ir.DataType.INT32


def _with_axis(x: ir.Value) -> ir.Value:
    flat: ir.Value = op.Reshape(x, whole(1)) if rank(x) == 0 else x
    return flat


def _top(x: ir.Value, count: Any, axis: int, *, largest: bool) -> tuple[Any, Any]:
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
    values, places = _top(flat, size_of(flat, axis), axis, largest=descending)
    if rank(x) == 0:
        return op.Identity(x), op.Reshape(places, whole())
    return values, places


def _kth(x: ir.Value, k: int | ir.Value, dim: int = -1, keepdim: bool = False) -> tuple[Any, Any]:
    if rank(x) == 0:
        return op.Identity(x), op.Constant(value=ir.tensor(0, dtype=INT64))
    axis = from_front(dim, x)
    found = _top(x, as_vector(k), axis, largest=False)
    last = [op.Slice(values, whole(-1), whole(2**62), whole(axis)) for values in found]
    if keepdim:
        return last[0], last[1]
    return op.Squeeze(last[0], whole(axis)), op.Squeeze(last[1], whole(axis))


def _middle(x: ir.Value, axis: int) -> Any:
    """Of an even number of values, torch takes the lower of the two in the middle."""
    return op.Div(op.Add(size_of(x, axis), whole(1)), whole(2))


def _median(x: ir.Value, dim: int = -1, keepdim: bool = False) -> tuple[Any, Any]:
    return _kth(x, _middle(x, from_front(dim, x)) if rank(x) else 1, dim, keepdim)


def _median_of_all(x: ir.Value) -> Any:
    flat = op.Reshape(x, whole(-1))
    values, _ = op.TopK(flat, _middle(flat, 0), axis=0, largest=0, sorted=1)
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


def _position(
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


def _search(sequence: ir.Value, values: Any, **options: Any) -> Any:
    if not isinstance(values, ir.Value):
        return _position(sequence, number(values, sequence), many=0, **options)
    return _position(sequence, values, many=rank(values), **options)


def _bucket(values: Any, boundaries: ir.Value, **options: Any) -> Any:
    return _search(boundaries, values, **options)


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


ORDERINGS: dict[str, Callable[..., Any]] = {
    "aten::amax": _extreme(op.ReduceMax),
    "aten::amin": _extreme(op.ReduceMin),
    "aten::sort.stable": _sort,
    "aten::kthvalue": _kth,
    "aten::median.dim": _median,
    "aten::median": _median_of_all,
    "aten::nanmedian.dim": _nan_median,
    "aten::searchsorted.Tensor": _search,
    "aten::searchsorted.Scalar": _search,
    "aten::bucketize.Tensor": _bucket,
    "aten::bucketize.Scalar": _bucket,
    "aten::isin.Tensor_Tensor": _is_in,
}
