"""Pooling over windows whose borders are computed from the sizes at run time.

Adaptive pooling: window i of m over n values is `floor(i*n/m) .. ceil((i+1)*n/m)`, in whole numbers; torch's own
decomposition computes the windows of the traced size. Plain pooling with a kernel that is a size: window i begins at
`i*stride - padding`. Each axis is pooled by itself: a mean of means over rectangles is the mean, a maximum of maxima
the maximum. Means are products with a matrix of weights, maxima are taken over gathered windows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from anyshape.conversion.operators.onnx_words import op
from anyshape.conversion.operators.onnx_words_shapes import (
    INT64,
    as_vector,
    counted,
    is_size_of,
    moved,
    rank,
    size_of,
    whole,
)

Size = int | ir.Value


@dataclass(frozen=True)
class Windows:
    """The windows along one axis, as vectors."""

    starts: Any
    ends: Any
    longest: Any
    counts: Any
    """What the sum over each window is divided by for its mean."""


def _adaptive(length: ir.Value, windows: Size) -> Windows:
    index, many = counted(windows), as_vector(windows)
    if isinstance(windows, ir.Value):  # of no windows at all, nobody looks at the length
        many = op.Max(many, whole(1))
    starts = op.Div(op.Mul(index, length), many)
    ends = op.Div(op.Sub(op.Add(op.Mul(op.Add(index, whole(1)), length), many), whole(1)), many)
    longest = op.Add(op.Div(op.Sub(op.Add(length, many), whole(1)), many), whole(1))
    return Windows(starts, ends, longest, op.Sub(ends, starts))


def _mean(x: ir.Value, axis: int, axes: int, length: ir.Value, windows: Windows) -> Any:
    """Along one axis; the weights are the same inside a window and 0 outside."""
    position = op.Unsqueeze(counted(length), whole(1))
    starts, ends, counts = (op.Unsqueeze(v, whole(0)) for v in (windows.starts, windows.ends, windows.counts))
    inside = op.And(op.GreaterOrEqual(position, starts), op.Less(position, ends))
    weights = op.Div(op.CastLike(inside, x), op.CastLike(counts, x))
    return moved(op.MatMul(moved(x, axis, axes - 1, axes), weights), axes - 1, axis, axes)


def _gathered(x: ir.Value, axis: int, windows: Windows) -> Any:
    """The windows along a new axis after this one.

    All are as long as the longest may be: a shorter one repeats its last value, which changes no maximum.
    """
    reach = op.Add(op.Unsqueeze(windows.starts, whole(1)), op.Unsqueeze(counted(windows.longest), whole(0)))
    index = op.Min(reach, op.Unsqueeze(op.Sub(windows.ends, whole(1)), whole(1)))
    return op.Gather(x, index, axis=axis)


def _maximum(x: ir.Value, axis: int, windows: Windows) -> Any:
    return op.ReduceMax(_gathered(x, axis, windows), whole(axis + 1), keepdims=0)


def _place(x: ir.Value, axis: int, axes: int, windows: Windows | None) -> Any:
    """Where along the axis the first maximum of each window stands; without windows, of the whole axis."""
    if windows is None:
        return op.ArgMax(x, axis=axis, keepdims=1)
    starts = windows.starts
    offset = op.Unsqueeze(starts, whole(*range(1, axes - axis))) if axis < axes - 1 else starts
    return op.Add(op.ArgMax(_gathered(x, axis, windows), axis=axis + 1, keepdims=0), offset)


def _adaptive_average(spatial: int) -> Callable[..., Any]:
    def pool(x: ir.Value, output_size: Sequence[Size]) -> Any:
        axes = rank(x)
        result = op.Identity(x)
        for axis, many in zip(range(axes - spatial, axes), _spread(output_size, spatial), strict=True):
            length = size_of(x, axis)
            if many == 1:
                result = op.ReduceMean(result, whole(axis), keepdims=1)
            elif not is_size_of(many, x, axis):
                result = _mean(result, axis, axes, length, _adaptive(length, many))
        return result

    return pool


def _adaptive_maximum(spatial: int) -> Callable[..., Any]:
    """Values and places, the places counted over all spatial axes. What nobody uses is dropped with its nodes."""

    def pool(x: ir.Value, output_size: Sequence[Size]) -> tuple[Any, Any]:
        axes, sizes = rank(x), _spread(output_size, spatial)
        places: list[Any] = []
        result = op.Identity(x)
        for axis in reversed(range(axes - spatial, axes)):
            many, length = sizes[axis - axes], size_of(x, axis)
            windows = None if many == 1 else _adaptive(length, many)
            here = _place(result, axis, axes, windows)
            places = [here, *(op.GatherElements(place, here, axis=axis) for place in places)]
            if windows is None:
                result = op.ReduceMax(result, whole(axis), keepdims=1)
            elif not is_size_of(many, x, axis):
                result = _maximum(result, axis, windows)
        return result, _counted_together(x, places)

    return pool


def _counted_together(x: ir.Value, places: Sequence[Any]) -> Any:
    """One number for a place along several axes, as torch counts them: row by row."""
    axes = rank(x)
    flat = places[0]
    for axis, place in zip(range(axes - len(places) + 1, axes), places[1:], strict=True):
        flat = op.Add(op.Mul(flat, size_of(x, axis)), place)
    return op.Cast(flat, to=INT64)


def _spread(sizes: Sequence[Size], spatial: int) -> list[Size]:
    """One size for every axis where one is given for all."""
    return list(sizes) * spatial if len(sizes) == 1 else list(sizes)


def _plain(
    length: ir.Value, kernel: Size, stride: Size, padding: Size, *, ceil_mode: bool, count_include_pad: bool
) -> Windows:
    kernels, strides, paddings = (as_vector(size) for size in (kernel, stride, padding))
    room = op.Sub(op.Add(length, op.Mul(paddings, whole(2))), kernels)
    many = op.Add(op.Div(op.Add(room, op.Sub(strides, whole(1))) if ceil_mode else room, strides), whole(1))
    if ceil_mode:  # no window begins in the padding at the end
        too_many = op.GreaterOrEqual(op.Mul(op.Sub(many, whole(1)), strides), op.Add(length, paddings))
        many = op.Sub(many, op.Cast(too_many, to=INT64))
    starts = op.Sub(op.Mul(counted(many), strides), paddings)
    ends = op.Min(op.Add(starts, kernels), op.Add(length, paddings))
    inner_starts, inner_ends = op.Max(starts, whole(0)), op.Min(ends, length)
    counts = op.Sub(ends, starts) if count_include_pad else op.Sub(inner_ends, inner_starts)
    return Windows(inner_starts, inner_ends, kernels, counts)


def pool(
    x: ir.Value, kind: str, kernel: Any, stride: Any, padding: Any, ceil_mode: bool, count_include_pad: bool
) -> Any:  # fmt: skip
    """`max_pool` or `avg_pool` whose kernel, stride or padding is a size."""
    axes = rank(x)
    result = op.Identity(x)
    for axis, size, step, pad in zip(range(axes - len(kernel), axes), kernel, stride, padding, strict=True):
        length = size_of(x, axis)
        if (size, step, pad) == (1, 1, 0):
            continue
        if pad == 0 and is_size_of(size, x, axis):
            reduce = op.ReduceMean if kind == "avg" else op.ReduceMax
            result = reduce(result, whole(axis), keepdims=1)
            continue
        windows = _plain(length, size, step, pad, ceil_mode=ceil_mode, count_include_pad=count_include_pad)
        result = _mean(result, axis, axes, length, windows) if kind == "avg" else _maximum(result, axis, windows)
    return result


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "aten::adaptive_avg_pool1d": _adaptive_average(1),
    "aten::adaptive_avg_pool2d": _adaptive_average(2),
    "aten::adaptive_avg_pool3d": _adaptive_average(3),
    "aten::_adaptive_avg_pool2d": _adaptive_average(2),
    "aten::_adaptive_avg_pool3d": _adaptive_average(3),
    "aten::adaptive_max_pool1d": _adaptive_maximum(1),
    "aten::adaptive_max_pool2d": _adaptive_maximum(2),
    "aten::adaptive_max_pool3d": _adaptive_maximum(3),
    "anyshape_sizes::adaptive_max_pool": lambda x, sizes: _adaptive_maximum(len(sizes))(x, sizes),
    "anyshape_sizes::pool": pool,
}
