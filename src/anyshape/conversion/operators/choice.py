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

import numpy as np
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
    static_size,
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
    flat = op.Reshape(x, whole(-1))
    one = number(1, x)
    if min != max:
        low, high = number(min, x), number(max, x)
    else:
        low, high = op.ReduceMin(flat, whole(0), keepdims=1), op.ReduceMax(flat, whole(0), keepdims=1)
        same = op.Equal(low, high)
        low, high = op.Where(same, op.Sub(low, one), low), op.Where(same, op.Add(high, one), high)
    inside = op.And(op.GreaterOrEqual(flat, low), op.LessOrEqual(flat, high))
    share = op.Mul(op.Div(op.Sub(flat, low), op.Sub(high, low)), number(bins, x))
    place = op.Min(op.Cast(op.Floor(op.Where(inside, share, number(0, x))), to=INT64), whole(bins - 1))
    zeros = op.Expand(number(0, x), whole(bins))
    return op.ScatterElements(zeros, place, op.CastLike(inside, x), axis=0, reduction="add")


def _histogram_with_edges(
    x: ir.Value,
    bins: int,
    *,
    range: Sequence[float] | None = None,  # noqa: A002
    weight: Any = None,
    density: bool = False,
) -> tuple[Any, Any]:
    """Bins of one width between two ends; those of the values where none are given."""
    flat = op.Reshape(x, whole(-1))
    if range is None:
        low, high = op.ReduceMin(flat, whole(0), keepdims=0), op.ReduceMax(flat, whole(0), keepdims=0)
    else:
        low, high = (number(end, x) for end in range)
    same = op.Equal(low, high)
    half = number(0.5, x)
    low, high = op.Where(same, op.Sub(low, half), low), op.Where(same, op.Add(high, half), high)
    index = op.CastLike(counted(bins + 1), x)
    step = op.Div(op.Sub(high, low), number(bins, x))
    is_lower = op.Less(index, number((bins + 1) // 2, x))
    from_end = op.Sub(high, op.Mul(op.Sub(number(bins, x), index), step))
    edges: Any = op.Where(is_lower, op.Add(low, op.Mul(index, step)), from_end)
    edges.dtype, edges.shape = x.dtype, ir.Shape([bins + 1])
    return _counts_between(flat, edges, bins, weight, density=density), edges


def _histogram_between(x: ir.Value, bins: ir.Value, *, weight: Any = None, density: bool = False) -> tuple[Any, Any]:
    many = static_size(bins, 0)
    if many is None:
        raise NotImplementedError("histogram between edges whose number varies")
    counts = _counts_between(op.Reshape(x, whole(-1)), bins, many - 1, weight, density=density)
    return counts, op.Identity(bins)


def _counts_between(flat: Any, edges: Any, bins: int, weight: Any, *, density: bool) -> Any:
    """How many values lie between neighbouring edges; the last bin holds its end, too."""
    first, last = op.Gather(edges, literal(0), axis=0), op.Gather(edges, literal(bins), axis=0)
    inner = op.Slice(edges, whole(1), whole(bins), whole(0))
    passed = op.GreaterOrEqual(op.Unsqueeze(flat, whole(1)), op.Unsqueeze(inner, whole(0)))
    place = op.ReduceSum(op.Cast(passed, to=INT64), whole(1), keepdims=0)
    inside = op.And(op.GreaterOrEqual(flat, first), op.LessOrEqual(flat, last))
    one, zero = op.CastLike(literal(1), edges), op.CastLike(literal(0), edges)
    many = op.Expand(one, op.Shape(flat)) if weight is None else op.Reshape(weight, whole(-1))
    counts = op.ScatterElements(
        op.Expand(zero, whole(bins)), place, op.Where(inside, many, zero), axis=0, reduction="add"
    )
    if not density:
        return counts
    widths = op.Sub(
        op.Slice(edges, whole(1), whole(bins + 1), whole(0)), op.Slice(edges, whole(0), whole(bins), whole(0))
    )
    return op.Div(counts, op.Mul(op.ReduceSum(counts, keepdims=0), widths))


def _without_repeats(
    x: ir.Value, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> tuple[Any, Any, Any]:
    """A value, or a slice along an axis, that equals the one before it is left out."""
    axis = 0 if dim is None else from_front(dim, x)
    values = op.Reshape(x, whole(-1)) if dim is None else x
    others = [a for a in range(rank(x)) if a != axis] if dim is not None else []
    differs = op.Not(op.Equal(_slice_of(values, 1, 2**62, axis), _slice_of(values, 0, -1, axis)))
    if others:
        differs = op.ReduceMax(op.Cast(differs, to=_INT32), whole(*others), keepdims=0)
    first = op.Expand(op.Constant(value=ir.tensor([True], dtype=BOOL)), op.Min(size_of(values, axis), whole(1)))
    begins = op.Concat(first, op.Cast(differs, to=BOOL), axis=0)
    group = op.Sub(op.CumSum(op.Cast(begins, to=INT64), literal(0)), whole(1))
    starts = op.Reshape(op.NonZero(begins), whole(-1))
    ends = op.Concat(_slice_of(starts, 1, 2**62, 0), op.Shape(group), axis=0)
    inverse = op.Reshape(group, op.Shape(x)) if dim is None else group
    counts = op.Sub(ends, starts)
    nothing = whole()
    return (
        op.Compress(values, begins, axis=axis),
        inverse if return_inverse else op.Identity(nothing),
        counts if return_counts else op.Identity(nothing),
    )


def _slice_of(x: Any, start: int, end: int, axis: int) -> Any:
    return op.Slice(x, whole(start), whole(end), whole(axis))


# ---- ONNX: order and extremes

# TopK keeps the order of equal values, in both directions, so a stable sort is a TopK of everything.

_INT32 = ir.DataType.INT32
_FLOATS = (FLOAT, DOUBLE, ir.DataType.FLOAT16)
_SORTABLE = {*_FLOATS, _INT32, INT64}
"""What ONNX Runtime's TopK takes."""


def _with_nan_above(x: Any, kind: ir.DataType) -> Any:
    most = literal(float(np.finfo(kind.numpy()).max), kind)
    return op.Where(op.IsNaN(x), literal(math.inf, kind), op.Min(x, most))


def _with_nan_below(x: Any, kind: ir.DataType) -> Any:
    least = literal(float(np.finfo(kind.numpy()).min), kind)
    return op.Where(op.IsNaN(x), literal(-math.inf, kind), op.Max(x, least))


def _first_in_order(x: ir.Value, count: Any, axis: int, *, largest: bool) -> tuple[Any, Any]:
    """Values and places in order; types that ONNX Runtime does not sort are sorted as int32.

    NaN is the largest, as in PyTorch: ONNX Runtime leaves it where it stands, and sorts each side for itself. Its place
    above infinity is that of the only infinity, the others being bounded.
    """
    options = {"axis": axis, "largest": int(largest), "sorted": 1}
    if x.dtype in _FLOATS:
        _, places = op.TopK(_with_nan_above(x, x.dtype), count, **options)
        return op.GatherElements(x, places, axis=axis), places
    is_sortable = x.dtype in _SORTABLE or x.dtype is None
    values, places = op.TopK(x if is_sortable else op.Cast(x, to=_INT32), count, **options)
    return values if is_sortable else op.Cast(values, to=x.dtype), places


def _sort(x: ir.Value, dim: int = -1, descending: bool = False, **_stable: Any) -> tuple[Any, Any]:
    """Always stable, whether that is asked for or not."""
    axis = from_front(dim, x)
    flat = op.Reshape(x, whole(1)) if rank(x) == 0 else x
    values, places = _first_in_order(flat, size_of(flat, axis), axis, largest=descending)
    if rank(x) == 0:
        return op.Identity(x), op.Reshape(places, whole())
    return values, places


def _topmost(x: ir.Value, k: Any, dim: int = -1, largest: bool = True, _sorted: bool = True) -> tuple[Any, Any]:
    if rank(x) == 0:
        return op.Identity(x), literal(0)
    return _first_in_order(x, as_vector(k), from_front(dim, x), largest=largest)


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
    """NaN where one is among the values."""
    if rank(x) == 0:
        return op.Identity(x), literal(0)
    axis = from_front(dim, x)
    value, place = _kth_value(x, _place_of_median(x, axis), dim, keepdim)
    if x.dtype not in _FLOATS:
        return value, place
    total = op.ReduceL1(x, whole(axis), keepdims=int(keepdim))
    missing = op.IsNaN(total)
    there = op.ArgMax(op.Cast(op.IsNaN(x), to=_INT32), axis=axis, keepdims=int(keepdim))
    return op.Where(missing, total, value), op.Where(missing, there, place)


def _of_all(along: Callable[..., tuple[Any, Any]], x: ir.Value) -> Any:
    flat: Any = op.Reshape(x, whole(-1))
    flat.dtype, flat.shape = x.dtype, ir.Shape([None])
    return along(flat, 0)[0]


def _most_frequent(x: ir.Value, dim: int = -1, keepdim: bool = False) -> tuple[Any, Any]:
    """The smallest of those that stand there most often, by comparing all with all, and its last place."""
    if rank(x) == 0:
        return op.Identity(x), literal(0)
    axis = from_front(dim, x)
    last = moved(x, axis, rank(x) - 1, rank(x))
    equal = op.Equal(op.Unsqueeze(last, whole(-1)), op.Unsqueeze(last, whole(-2)))
    often = op.ReduceSum(op.Cast(equal, to=INT64), whole(-1), keepdims=0)
    most = op.Equal(often, op.ReduceMax(often, whole(-1), keepdims=1))
    kind = x.dtype if x.dtype in _SORTABLE else INT64
    last = op.Cast(last, to=kind)
    beyond = math.inf if kind in (FLOAT, DOUBLE, ir.DataType.FLOAT16) else np.iinfo(kind.numpy()).max
    value = op.ReduceMin(op.Where(most, last, literal(beyond, kind)), whole(-1), keepdims=1)
    place = op.ArgMax(op.Cast(op.Equal(last, value), to=_INT32), axis=-1, keepdims=1, select_last_index=1)
    if not keepdim:
        return op.Cast(op.Squeeze(value, whole(-1)), to=x.dtype), op.Squeeze(place, whole(-1))
    return op.Cast(moved(value, rank(x) - 1, axis, rank(x)), to=x.dtype), moved(place, rank(x) - 1, axis, rank(x))


def _nan_median(x: ir.Value, dim: int = -1, keepdim: bool = False) -> tuple[Any, Any]:
    """NaNs are sorted to the end; the middle is that of the others, and NaN where there are none."""
    if x.dtype not in _FLOATS or rank(x) == 0:
        return _median(x, dim, keepdim)
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
    # NaN stands behind all
    behind = op.Greater if right or side == "right" else op.GreaterOrEqual

    def before(one: Any, other: Any) -> Any:
        return op.Not(behind(one, other))

    compared = before(op.Unsqueeze(sequence, whole(-2)), op.Unsqueeze(values, whole(-1)))
    if values is not wanted or rank(values) == 0:
        compared = before(sequence, values)
    many = op.ReduceSum(op.Cast(compared, to=INT64), whole(-1), keepdims=0)
    many = op.Reshape(many, op.Shape(values), allowzero=1)  # of no values, ONNX Runtime leaves the axis
    return op.Cast(many, to=_INT32) if out_int32 else many


def _place_among(values: Any, boundaries: ir.Value, **options: Any) -> Any:
    return _place_in_sorted(boundaries, values, **options)


def _is_in(values: ir.Value, wanted: ir.Value, *, invert: bool = False, **_assumed: Any) -> Any:
    equal = op.Equal(op.Unsqueeze(values, whole(-1)), op.Reshape(wanted, whole(-1)))
    found = op.Greater(op.ReduceSum(op.Cast(equal, to=INT64), whole(-1), keepdims=0), whole(0))
    found = op.Reshape(found, op.Shape(values))
    return op.Not(found) if invert else found


def _extreme(reduce: Callable[..., Any], x: ir.Value, dim: Sequence[int] = (), keepdim: bool = False) -> Any:
    """Along some axes; along all where none is named. ONNX Runtime sees NaN only where it comes first."""
    if rank(x) == 0:
        return op.Identity(x)
    axes = whole(*(from_front(axis, x) for axis in dim or range(rank(x))))
    is_narrow = x.dtype in (BOOL, ir.DataType.INT16)  # of which ONNX Runtime finds none
    result = reduce(op.Cast(x, to=_INT32) if is_narrow else x, axes, keepdims=int(keepdim))
    if x.dtype in _FLOATS:
        # a sum of absolute values is NaN where one of them is, and never else
        total = op.ReduceL1(x, axes, keepdims=int(keepdim))
        return op.Where(op.IsNaN(total), total, result)
    return op.Cast(result, to=x.dtype) if is_narrow else result


def _vector_norm(x: ir.Value, ord: float = 2.0, dim: Any = None, keepdim: bool = False, *, dtype: int = -1) -> Any:  # noqa: A002
    """The largest or smallest value is NaN where one is; all else is torch's."""
    if rank(x) == 0:  # a root of a power would overflow, and that of a tiny one would be zero
        value = x if dtype in (None, -1) else op.Cast(x, to=dtype)
        return op.Abs(value) if ord else op.CastLike(op.Cast(x, to=BOOL), value)
    if not math.isinf(ord):
        return torchs_translation("linalg.aten_linalg_vector_norm")(x, ord, dim, keepdim, dtype)
    typed: Any = op.Abs(x if dtype in (None, -1) else op.Cast(x, to=dtype))
    typed.dtype, typed.shape = (x.dtype if dtype in (None, -1) else ir.DataType(dtype)), x.shape
    axes = () if dim is None else (dim if isinstance(dim, Sequence) else [dim])
    return _extreme(op.ReduceMax if ord > 0 else op.ReduceMin, typed, axes, keepdim)


def _extreme_and_place(
    reduce: Callable[..., Any], place: Callable[..., Any], x: ir.Value, dim: int, keepdim: bool = False
) -> tuple[Any, Any]:
    if rank(x) == 0:
        return op.Identity(x), literal(0)
    return _extreme(reduce, x, [dim], keepdim), place(x, dim, keepdim)


def _place_of_extreme(find: Callable[..., Any], comparable: Callable[..., Any], x: ir.Value, dim: Any = None,
    keepdim: bool = False,
) -> Any:  # fmt: skip
    """The first one, or that of the first NaN; without an axis, over all values in a row."""
    numbers = op.Cast(x, to=_INT32) if x.dtype in (BOOL, ir.DataType.INT16) else x
    if dim is None or rank(x) == 0:
        place = find(_if_float(comparable, x, op.Reshape(numbers, whole(-1))), axis=0, keepdims=0)
        return op.Reshape(place, whole(*[1] * rank(x))) if keepdim else place
    return find(_if_float(comparable, x, numbers), axis=dim, keepdims=int(keepdim))


def _if_float(comparable: Callable[..., Any], x: ir.Value, numbers: Any) -> Any:
    return comparable(numbers, x.dtype) if x.dtype in _FLOATS else numbers


_PLACE_OF_MAXIMUM = partial(_place_of_extreme, op.ArgMax, _with_nan_above)
_PLACE_OF_MINIMUM = partial(_place_of_extreme, op.ArgMin, _with_nan_below)


def _both_extremes(x: ir.Value, *, dim: int | None = None, keepdim: bool = False) -> tuple[Any, Any]:
    axes = [] if dim is None else [dim]
    return _extreme(op.ReduceMin, x, axes, keepdim), _extreme(op.ReduceMax, x, axes, keepdim)


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
        if x.dtype in _FLOATS:  # NaN is ahead of all, and nothing of it
            ahead = op.Or(ahead, op.IsNaN(now))
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
    inside = DOUBLE if kind == FLOAT else kind  # as PyTorch: what is infinite in float32 may come back to zero
    front = moved(op.Cast(typed, to=inside), axis, 0, axes)
    ones = op.Expand(literal(1, inside), op.Shape(_first_slice(front)))
    (products,) = scanned([ones], [front], [inside, inside], lambda so_far, now: [op.Mul(so_far, now)])
    return moved(op.Cast(products, to=kind), 0, axis, axes)


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
    "aten::histogram.bin_ct": _histogram_with_edges,
    "aten::histogram.bins_tensor": _histogram_between,
    "aten::unique_consecutive": _without_repeats,
    "aten::repeat_interleave.self_int": _repeated_by_number,
    "aten::amax": partial(_extreme, op.ReduceMax),
    "aten::amin": partial(_extreme, op.ReduceMin),
    "aten::max": partial(_extreme, op.ReduceMax),
    "aten::min": partial(_extreme, op.ReduceMin),
    "aten::max.dim": partial(_extreme_and_place, op.ReduceMax, _PLACE_OF_MAXIMUM),
    "aten::min.dim": partial(_extreme_and_place, op.ReduceMin, _PLACE_OF_MINIMUM),
    "aten::argmax": _PLACE_OF_MAXIMUM,
    "aten::argmin": _PLACE_OF_MINIMUM,
    "aten::linalg_vector_norm": _vector_norm,
    "aten::aminmax": _both_extremes,
    "aten::sort": _sort,
    "aten::sort.stable": _sort,
    "aten::topk": _topmost,
    "aten::kthvalue": _kth_value,
    "aten::median.dim": _median,
    "aten::median": partial(_of_all, _median),
    "aten::nanmedian": partial(_of_all, _nan_median),
    "aten::nanmedian.dim": _nan_median,
    "aten::mode": _most_frequent,
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
