"""What values decide: comparisons to a plain truth; what is chosen or counted; order, extremes, running values.

Recognised: `torch.equal`, `torch.allclose` and `torch.is_nonzero`, for which a trace has no answer. Put there: the same
comparison by elements and the question whether all of them hold, which a trace that takes both sides of a branch can
follow; where the shapes differ, `equal` is false, as in torch. All else is translated alone. The size of what is chosen
is known at run time only; order is by ONNX's TopK and by comparing; running values are a Scan that keeps what it has so
far.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import onnx_ir as ir
import torch
from torch import Tensor

from anyshape.conversion.operators.onnx_words import (
    BOOL,
    DOUBLE,
    FLOAT,
    INT64,
    as_scalar,
    as_vector,
    counted,
    from_front,
    literal,
    moved,
    number,
    op,
    rank,
    scanned,
    size_of,
    torchs_translation,
    vector,
    whole,
)
from anyshape.conversion.operators.repair import Answer, Repair, Used, answering

# ---- the repair


def _equal(used: Used, input: Tensor, other: Tensor) -> bool:  # noqa: A002
    used("torch.equal: compared in the file")
    return input.shape == other.shape and bool((input == other).all())


def _allclose(used: Used, input: Tensor, other: Tensor, *tolerances: Any, **named: Any) -> bool:  # noqa: A002
    used("torch.allclose: compared in the file")
    return bool(torch.isclose(input, other, *tolerances, **named).all())


def _is_nonzero(used: Used, input: Tensor) -> bool:  # noqa: A002
    used("torch.is_nonzero: asked in the file")
    return bool(input.reshape(()) != 0)


_KINDS: dict[str, Answer] = {"equal": _equal, "allclose": _allclose, "is_nonzero": _is_nonzero}
_ANSWERS = {(owner, name): answer for owner in (torch, Tensor) for name, answer in _KINDS.items()}
COMPARISONS = Repair("comparisons", answering(_ANSWERS))

# ---- ONNX: what is chosen or counted


def _masked_select(x: ir.Value, mask: ir.Value) -> Any:
    """Both are broadcast against each other, then the values under the mask are taken row by row."""
    together = op.Shape(op.Expand(mask, op.Shape(x)))
    flat = op.Reshape(op.Expand(x, together), whole(-1))
    return op.Compress(flat, op.Reshape(op.Expand(mask, together), whole(-1)), axis=0)


def _places_in_fixed_number(x: ir.Value, *, size: int | ir.Value, fill_value: int = -1) -> Any:
    """As many rows as asked for, cut off or filled up."""
    truth = op.Cast(x, to=BOOL)
    found = op.Transpose(op.NonZero(truth), perm=[1, 0])
    shape = op.Concat(as_vector(size), whole(rank(x)), axis=0)
    filler = op.Expand(literal(fill_value), shape)
    return op.Slice(op.Concat(found, filler, axis=0), whole(0), as_vector(size), whole(0))


def _counts(x: ir.Value, weights: ir.Value | None = None, minlength: int | ir.Value = 0) -> Any:
    """How often each number from 0 to the largest stands there, or the sum of its weights."""
    places = op.Cast(x, to=INT64)
    last = op.ReduceMax(op.Concat(places, whole(-1), axis=0), whole(0), keepdims=1)
    length = op.Max(op.Add(last, whole(1)), as_vector(minlength))
    dtype = INT64 if weights is None else FLOAT if weights.dtype == FLOAT else DOUBLE
    zeros = op.ConstantOfShape(length, value=ir.tensor([0], dtype=dtype))
    if weights is None:
        weights = op.ConstantOfShape(op.Shape(x), value=ir.tensor([1], dtype=INT64))
    return op.ScatterElements(zeros, places, op.Cast(weights, to=dtype), axis=0, reduction="add")


def _repeated_by_number(x: ir.Value, repeats: int | ir.Value, dim: int | None = None, **_size: Any) -> Any:
    """Each slice along an axis as often as one number says; without an axis, each value."""
    if dim is None or rank(x) == 0:
        flat = op.Reshape(x, whole(-1, 1))
        shape = op.Concat(op.Shape(flat, start=0, end=1), as_vector(repeats), axis=0)
        return op.Reshape(op.Expand(flat, shape), whole(-1))
    axis, axes = from_front(dim, x), rank(x)
    before, after = [size_of(x, a) for a in range(axis + 1)], [size_of(x, a) for a in range(axis + 1, axes)]
    spread = op.Expand(op.Unsqueeze(x, whole(axis + 1)), vector([*before, repeats, *after]))
    longer = op.Mul(before.pop(), as_vector(repeats))
    return op.Reshape(spread, vector([*before, longer, *after]), allowzero=1)


def _number_of_true(x: ir.Value) -> Any:
    return op.ReduceSum(op.Cast(x, to=INT64), keepdims=0)


def _histogram(x: ir.Value, bins: int = 100, min: float = 0, max: float = 0) -> Any:  # noqa: A002  torch's names
    """Without a range, from the smallest value to the largest, or one to each side where they are the same."""
    if min != max:
        return torchs_translation("core.aten_histc")(x, bins, min, max)
    flat = op.Reshape(x, whole(-1))
    low, high = op.ReduceMin(flat, whole(0), keepdims=1), op.ReduceMax(flat, whole(0), keepdims=1)
    one = number(1, x)
    same = op.Equal(low, high)
    low, high = op.Where(same, op.Sub(low, one), low), op.Where(same, op.Add(high, one), high)
    share = op.Mul(op.Div(op.Sub(flat, low), op.Sub(high, low)), number(bins, x))
    place = op.Min(op.Cast(op.Floor(share), to=INT64), whole(bins - 1))
    zeros = op.Expand(number(0, x), whole(bins))
    return op.ScatterElements(zeros, place, op.Expand(one, op.Shape(flat)), axis=0, reduction="add")


# ---- ONNX: order and extremes

# TopK keeps the order of equal values, in both directions, so a stable sort is a TopK of everything.

_INT32 = ir.DataType.INT32
_SORTABLE = {FLOAT, DOUBLE, _INT32, INT64, ir.DataType.FLOAT16}
"""What ONNX Runtime's TopK takes."""


def _first_in_order(x: ir.Value, count: Any, axis: int, *, largest: bool) -> tuple[Any, Any]:
    """Values and places in order; types that ONNX Runtime does not sort are sorted as int32."""
    is_sortable = x.dtype in _SORTABLE or x.dtype is None
    sortable = x if is_sortable else op.Cast(x, to=_INT32)
    values, places = op.TopK(sortable, count, axis=axis, largest=int(largest), sorted=1)
    return values if is_sortable else op.Cast(values, to=x.dtype), places


def _sort(x: ir.Value, *, dim: int = -1, descending: bool = False, **_stable: Any) -> tuple[Any, Any]:
    """Always stable, whether that is asked for or not."""
    axis = from_front(dim, x)
    flat = op.Reshape(x, whole(1)) if rank(x) == 0 else x
    values, places = _first_in_order(flat, size_of(flat, axis), axis, largest=descending)
    if rank(x) == 0:
        return op.Identity(x), op.Reshape(places, whole())
    return values, places


def _kth_value(x: ir.Value, k: int | ir.Value, dim: int = -1, keepdim: bool = False) -> tuple[Any, Any]:
    if rank(x) == 0:
        return op.Identity(x), literal(0)
    axis = from_front(dim, x)
    found = _first_in_order(x, as_vector(k), axis, largest=False)
    value, place = (op.Slice(values, whole(-1), whole(2**62), whole(axis)) for values in found)
    return _with_or_without_axis(value, place, axis, keepdim=keepdim)


def _with_or_without_axis(value: Any, place: Any, axis: int, *, keepdim: bool) -> tuple[Any, Any]:
    return (value, place) if keepdim else (op.Squeeze(value, whole(axis)), op.Squeeze(place, whole(axis)))


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
    return _with_or_without_axis(value, op.GatherElements(places, middle, axis=axis), axis, keepdim=keepdim)


def _place_in_sorted(
    sequence: ir.Value, wanted: Any, *, out_int32: bool = False, right: bool = False, side: str | None = None,
    sorter: ir.Value | None = None,
) -> Any:  # fmt: skip
    """How many of the sorted values stand before each value: those that are smaller, or not larger."""
    values = wanted if isinstance(wanted, ir.Value) else number(wanted, sequence)
    if sorter is not None:
        sequence = op.GatherElements(sequence, sorter, axis=-1)
    before = op.LessOrEqual if right or side == "right" else op.Less
    compared = before(op.Unsqueeze(sequence, whole(-2)), op.Unsqueeze(values, whole(-1)))
    if values is not wanted or rank(values) == 0:
        compared = before(sequence, values)
    many = op.ReduceSum(op.Cast(compared, to=INT64), whole(-1), keepdims=0)
    return op.Cast(many, to=_INT32) if out_int32 else many


def _place_among(values: Any, boundaries: ir.Value, **options: Any) -> Any:
    return _place_in_sorted(boundaries, values, **options)


def _is_in(values: ir.Value, wanted: ir.Value, *, invert: bool = False, **_assumed: Any) -> Any:
    equal = op.Equal(op.Unsqueeze(values, whole(-1)), op.Reshape(wanted, whole(-1)))
    found = op.Greater(op.ReduceSum(op.Cast(equal, to=INT64), whole(-1), keepdims=0), whole(0))
    found = op.Reshape(found, op.Shape(values))
    return op.Not(found) if invert else found


def _extreme(reduce: Callable[..., Any], x: ir.Value, dim: Sequence[int] = (), keepdim: bool = False) -> Any:
    """Along some axes; along all where none is named."""
    if rank(x) == 0:
        return op.Identity(x)
    axes = dim or range(rank(x))
    numbers = op.Cast(x, to=_INT32) if x.dtype == BOOL else x
    result = reduce(numbers, whole(*(from_front(axis, x) for axis in axes)), keepdims=keepdim)
    return op.Cast(result, to=BOOL) if x.dtype == BOOL else result


# ---- ONNX: running maxima, minima and products along an axis


def _first_slice(x: Any) -> Any:
    return op.Squeeze(op.Slice(x, whole(0), whole(1), whole(0)), whole(0))


def _running_extremes(better: Callable[..., Any], x: ir.Value, dim: int) -> tuple[Any, Any]:
    """Values and places; of equal values, the last one counts."""
    if rank(x) == 0:
        return op.Identity(x), as_scalar(0)
    axis, axes = from_front(dim, x), rank(x)
    front = moved(x, axis, 0, axes)
    first = _first_slice(front)
    place = op.Expand(as_scalar(0), op.Shape(first))

    def step(value: Any, where: Any, now: Any, index: Any) -> tuple[Any, Any]:
        ahead = better(now, value)
        return op.Where(ahead, now, value), op.Where(ahead, index, where)

    steps = counted(op.Shape(front, start=0, end=1))
    values, places = scanned([first, place], [front, steps], [x.dtype, INT64, x.dtype, INT64], step)
    return moved(values, 0, axis, axes), moved(places, 0, axis, axes)


def _running_products(x: ir.Value, dim: int, *, dtype: int | None = None) -> Any:
    kind = ir.DataType(dtype) if dtype not in (None, -1) else x.dtype
    if kind is not None and kind in (BOOL, ir.DataType.INT8, ir.DataType.UINT8, ir.DataType.INT32):
        kind = INT64 if dtype in (None, -1) else kind
    typed = x if kind == x.dtype else op.Cast(x, to=kind)
    if rank(x) == 0:
        return op.Identity(typed)
    axis, axes = from_front(dim, x), rank(x)
    front = moved(typed, axis, 0, axes)
    ones = op.Expand(literal(1, kind), op.Shape(_first_slice(front)))
    (products,) = scanned([ones], [front], [kind, kind], lambda so_far, now: [op.Mul(so_far, now)])
    return moved(products, 0, axis, axes)


def _running_log_sums(x: ir.Value, dim: int) -> Any:
    """Step by step, each from the larger of two: a sum of exponentials overflows, or is zero beside the largest."""
    if rank(x) == 0:
        return op.Identity(x)
    axis, axes = from_front(dim, x), rank(x)
    front = moved(x, axis, 0, axes)
    nothing = op.Expand(literal(-math.inf, x.dtype), op.Shape(_first_slice(front)))

    def step(so_far: Any, now: Any) -> list[Any]:
        less = op.Exp(op.Neg(op.Abs(op.Sub(so_far, now))))
        both = op.Add(op.Max(so_far, now), op.Log(op.Add(less, literal(1, x.dtype))))
        twice = op.Add(now, literal(math.log(2), x.dtype))  # of equal infinities there is no difference
        return [op.Where(op.Equal(so_far, now), twice, both)]

    (sums,) = scanned([nothing], [front], [x.dtype, x.dtype], step)
    return moved(sums, 0, axis, axes)


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "aten::_is_all_true": lambda x: op.Equal(_number_of_true(op.Not(x)), literal(0)),  # of no values, yes
    "aten::_is_any_true": lambda x: op.Greater(_number_of_true(x), literal(0)),
    "aten::masked_select": _masked_select,
    "aten::nonzero_static": _places_in_fixed_number,
    "aten::bincount": _counts,
    "aten::histc": _histogram,
    "aten::repeat_interleave.self_int": _repeated_by_number,
    "aten::amax": partial(_extreme, op.ReduceMax),
    "aten::amin": partial(_extreme, op.ReduceMin),
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
    "aten::cummax": partial(_running_extremes, op.GreaterOrEqual),
    "aten::cummin": partial(_running_extremes, op.LessOrEqual),
    "aten::cumprod": _running_products,
    "aten::logcumsumexp": _running_log_sums,
}
