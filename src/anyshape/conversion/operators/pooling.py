"""Pooling over windows whose borders are computed from the sizes at run time: `F.avg_pool2d(x, x.shape[2:])`.

Recognised: calls of the pooling functions with a symbolic number of windows, kernel, stride or padding
(`F.adaptive_max_pool2d(x, (None, 4))`). Torch's operators take plain numbers there, which pins the sizes. Put there:
operators that take sizes, translated to the very windows that torch's documentation defines.

Adaptive pooling: window i of m over n values is `floor(i*n/m) .. ceil((i+1)*n/m)`, in whole numbers; torch's own
decomposition computes the windows of the traced size. Plain pooling with a kernel that is a size: window i begins at
`i*stride - padding`. Each axis is pooled by itself: a mean of means over rectangles is the mean, a maximum of maxima
the maximum. Means are products with a matrix of weights, maxima are taken over gathered windows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import onnx_ir as ir
import torch
import torch.nn.functional as F  # noqa: N812  everybody's name for it
from torch import Tensor

from anyshape.conversion.operators.onnx_words import (
    INT64,
    as_vector,
    counted,
    exact,
    for_each_axis,
    is_size_of,
    moved,
    number,
    op,
    rank,
    size_of,
    torchs_translation,
    whole,
)
from anyshape.conversion.operators.repair import Answer, Repair, Used, answering, holds_size, is_size
from anyshape.conversion.speed.operator_table import define
from anyshape.torchkit.patches import patched

# ---- what stands in a trace, and its shapes


def _shape_of_maxima(x: Tensor, sizes: Sequence[Any]) -> tuple[Tensor, Tensor]:
    shape = (*x.shape[: x.ndim - len(sizes)], *sizes)
    return x.new_empty(shape), x.new_empty(shape, dtype=torch.int64)


def _shape_of_pooled(
    x: Tensor, _kind: str, kernel: Any, stride: Any, padding: Any, ceil_mode: bool, _count: bool
) -> Tensor:  # fmt: skip
    spatial = len(kernel)
    rows = zip(x.shape[x.ndim - spatial :], kernel, stride, padding, strict=True)
    return x.new_empty((*x.shape[: x.ndim - spatial], *(_number_of_windows(*row, ceil_mode) for row in rows)))


def _number_of_windows(length: Any, kernel: Any, stride: Any, padding: Any, ceil_mode: bool) -> Any:
    room = length + 2 * padding - kernel
    return (room + (stride - 1 if ceil_mode else 0)) // stride + 1


define("anyshape_sizes::adaptive_max_pool", "(Tensor x, SymInt[] sizes) -> (Tensor, Tensor)", _shape_of_maxima)
define(
    "anyshape_sizes::pool",
    "(Tensor x, str kind, SymInt[] kernel, SymInt[] stride, SymInt[] padding, bool ceil_mode, bool count_include_pad)"
    " -> Tensor",
    _shape_of_pooled,
)


# ---- the repairs

_adaptive_mean: Answer = F.adaptive_avg_pool2d  # typed for plain numbers


def _adaptive_maximum_by_sizes(
    name: str,
    spatial: int,
    indices: bool,
    used: Used,
    input: Tensor,  # noqa: A002
    output_size: Any,
    return_indices: bool = False,
) -> Any:
    given = for_each_axis(output_size, spatial)
    sizes = [size if wish is None else wish for wish, size in zip(given, input.shape[-spatial:], strict=True)]
    if not holds_size(sizes):
        return NotImplemented
    used(f"{name}: windows by the size at run time")
    values, places = torch.ops.anyshape_sizes.adaptive_max_pool(input, sizes)
    return (values, places) if indices or return_indices else values


def _adaptive_mean_of_one_axis(used: Used, input: Tensor, output_size: Any) -> Any:  # noqa: A002
    (size,) = for_each_axis(output_size, 1)
    if not is_size(size):
        return NotImplemented
    used("F.adaptive_avg_pool1d: windows by the size at run time")
    # the operator for two axes takes sizes
    return _adaptive_mean(input.unsqueeze(-2), (1, size)).squeeze(-2)


_OPTIONS: dict[str, dict[str, Any]] = {
    "avg": {"ceil_mode": False, "count_include_pad": True, "divisor_override": None},
    "max": {"dilation": 1, "ceil_mode": False, "return_indices": False},
}
"""What the functions for means and for maxima take behind the padding."""


def _pool_by_sizes(
    kind: str,
    spatial: int,
    used: Used,
    input: Tensor,  # noqa: A002
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    *rest: Any,
    **named: Any,
) -> Any:
    windows = _numbers_of_windows(kernel_size, stride, padding, spatial)
    options: dict[str, Any] = {**_OPTIONS[kind], **dict(zip(_OPTIONS[kind], rest, strict=False)), **named}
    dilated = any(step != 1 for step in for_each_axis(options.pop("dilation", 1), spatial))
    ceil_mode, count_include_pad = options.pop("ceil_mode"), options.pop("count_include_pad", True)
    # another divisor, places of maxima, or what torch does not know either
    special = any(value is not None and value is not False for value in options.values())
    if dilated or special or not holds_size(*windows):
        return NotImplemented
    used(f"F.{kind}_pool{spatial}d: windows by the size at run time")
    return torch.ops.anyshape_sizes.pool(input, kind, *windows, ceil_mode, count_include_pad)


def _numbers_of_windows(kernel: Any, stride: Any, padding: Any, spatial: int) -> tuple[list[Any], list[Any], list[Any]]:
    kernels = for_each_axis(kernel, spatial)
    strides = kernels if stride is None or stride == [] else for_each_axis(stride, spatial)
    return kernels, strides, for_each_axis(padding, spatial)


def _answers() -> dict[tuple[Any, str], Answer]:
    maxima = partial(_adaptive_maximum_by_sizes, "torch.adaptive_max_pool1d", 1, True)
    answers: dict[tuple[Any, str], Answer] = {(torch, "adaptive_max_pool1d"): maxima}
    answers[F, "adaptive_avg_pool1d"] = _adaptive_mean_of_one_axis
    for spatial in (1, 2, 3):
        name = f"adaptive_max_pool{spatial}d"
        answers[F, name] = partial(_adaptive_maximum_by_sizes, f"F.{name}", spatial, False)
        answers[F, f"{name}_with_indices"] = partial(_adaptive_maximum_by_sizes, f"F.{name}", spatial, True)
        answers[F, f"avg_pool{spatial}d"] = partial(_pool_by_sizes, "avg", spatial)
        answers[F, f"max_pool{spatial}d"] = partial(_pool_by_sizes, "max", spatial)
        answers[torch, f"max_pool{spatial}d"] = answers[F, f"max_pool{spatial}d"]
    return answers


POOLING = Repair("pooling", answering(_answers()))


def _over_two_axes(genuine: Answer, used: Used) -> Answer:
    """Torch looks at the traced length of one axis; with a row of one before it, there are two, and it does not."""

    def max_pool1d(
        input: Tensor,  # noqa: A002
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> Any:
        kernels, strides, paddings = _numbers_of_windows(kernel_size, stride, padding, 1)
        if not is_size(input.shape[-1]) or holds_size(kernels, strides, paddings):
            return genuine(input, kernel_size, stride, padding, dilation, ceil_mode)
        used("F.max_pool1d: as a pool over two axes")
        rows = ((1, *kernels), (1, *strides), (0, *paddings), (1, *for_each_axis(dilation, 1)))
        return torch.max_pool2d(input.unsqueeze(-2), *rows, ceil_mode).squeeze(-2)

    return max_pool1d


POOLING_OF_ONE_AXIS = Repair(
    "maxima along one axis",
    lambda used: patched(torch, "max_pool1d", _over_two_axes(torch.max_pool1d, used)),
    always=True,
)

# ---- ONNX

Size = int | ir.Value


@dataclass(frozen=True)
class Windows:
    """The windows along one axis, as vectors."""

    starts: Any
    ends: Any
    longest: Any
    counts: Any
    """What the sum over each window is divided by for its mean."""


def _adaptive_windows(length: ir.Value, windows: Size) -> Windows:
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


def _sum_of_windows(x: Any, axis: int, axes: int, windows: Windows) -> Any:
    """Each window is added up alone, so that NaN stays in its own; for windows that overlap little."""
    inside = op.Less(op.Unsqueeze(counted(windows.longest), whole(0)), _column(windows.ends, windows.starts))
    later = axes - 1 - axis
    inside = op.Unsqueeze(inside, whole(*range(2, 2 + later))) if later else inside
    kept = op.Where(inside, _values_in_windows(x, axis, windows), op.CastLike(exact(0), x))
    return op.ReduceSum(kept, whole(axis + 1), keepdims=0)


def _column(ends: Any, starts: Any) -> Any:
    return op.Unsqueeze(op.Sub(ends, starts), whole(1))


def _mean_of_windows(x: Any, axis: int, axes: int, windows: Windows) -> Any:
    counts, later = op.CastLike(windows.counts, x), axes - 1 - axis
    counts = op.Unsqueeze(counts, whole(*range(1, 1 + later))) if later else counts
    return op.Div(_sum_of_windows(x, axis, axes, windows), counts)


def _values_in_windows(x: ir.Value, axis: int, windows: Windows) -> Any:
    """The windows along a new axis after this one.

    All are as long as the longest may be: a shorter one repeats its last value, which changes no maximum.
    """
    reach = op.Add(op.Unsqueeze(windows.starts, whole(1)), op.Unsqueeze(counted(windows.longest), whole(0)))
    index = op.Min(reach, op.Unsqueeze(op.Sub(windows.ends, whole(1)), whole(1)))
    return op.Gather(x, index, axis=axis)


def _maximum(x: ir.Value, axis: int, windows: Windows) -> Any:
    return op.ReduceMax(_values_in_windows(x, axis, windows), whole(axis + 1), keepdims=0)


def _place_of_maximum(x: ir.Value, axis: int, axes: int, windows: Windows | None) -> Any:
    """Where along the axis the first maximum of each window stands; without windows, of the whole axis."""
    if windows is None:
        return op.ArgMax(x, axis=axis, keepdims=1)
    starts = windows.starts
    offset = op.Unsqueeze(starts, whole(*range(1, axes - axis))) if axis < axes - 1 else starts
    return op.Add(op.ArgMax(_values_in_windows(x, axis, windows), axis=axis + 1, keepdims=0), offset)


def _onnx_adaptive_mean(spatial: int, x: ir.Value, output_size: Sequence[Size]) -> Any:
    axes = rank(x)
    result = op.Identity(x)
    for axis, many in zip(range(axes - spatial, axes), for_each_axis(output_size, spatial), strict=True):
        length = size_of(x, axis)
        if many == 1:
            result = op.ReduceMean(result, whole(axis), keepdims=1)
        elif not is_size_of(many, x, axis):
            result = _mean_of_windows(result, axis, axes, _adaptive_windows(length, many))
    return result


def _onnx_adaptive_maximum(spatial: int, x: ir.Value, output_size: Sequence[Size]) -> tuple[Any, Any]:
    """Values and places, the places counted over all spatial axes. What nobody uses is dropped with its nodes."""
    axes, sizes = rank(x), for_each_axis(output_size, spatial)
    places: list[Any] = []
    result = op.Identity(x)
    for axis in reversed(range(axes - spatial, axes)):
        many, length = sizes[axis - axes], size_of(x, axis)
        windows = None if many == 1 else _adaptive_windows(length, many)
        here = _place_of_maximum(result, axis, axes, windows)
        places = [here, *(op.GatherElements(place, here, axis=axis) for place in places)]
        if windows is None:
            result = op.ReduceMax(result, whole(axis), keepdims=1)
        elif not is_size_of(many, x, axis):
            result = _maximum(result, axis, windows)
    return result, _places_over_all_axes(x, places)


def _places_over_all_axes(x: ir.Value, places: Sequence[Any]) -> Any:
    """One number for a place along several axes, as torch counts them: row by row."""
    axes = rank(x)
    flat = places[0]
    for axis, place in zip(range(axes - len(places) + 1, axes), places[1:], strict=True):
        flat = op.Add(op.Mul(flat, size_of(x, axis)), place)
    return op.Cast(flat, to=INT64)


def _plain_windows(
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


def _onnx_pool(
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
        windows = _plain_windows(length, size, step, pad, ceil_mode=ceil_mode, count_include_pad=count_include_pad)
        result = _mean(result, axis, axes, length, windows) if kind == "avg" else _maximum(result, axis, windows)
    return result


def _onnx_mean(
    spatial: int,
    x: ir.Value,
    kernel_size: Any,
    stride: Any = (),
    padding: Any = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Any:
    """`divisor_override` replaces the size of the window, which torch's translation ignores."""
    torchs = torchs_translation(f"nn.aten_avg_pool{spatial}d")
    if divisor_override is None:
        return torchs(x, kernel_size, stride, padding, ceil_mode, count_include_pad)
    kernel = for_each_axis(kernel_size, spatial)
    if ceil_mode:
        steps, pads, result = for_each_axis(stride or kernel, spatial), for_each_axis(padding, spatial), x
        for axis, *sizes in zip(range(rank(x) - spatial, rank(x)), kernel, steps, pads, strict=True):
            windows = _plain_windows(size_of(x, axis), *sizes, ceil_mode=True, count_include_pad=False)
            result = _sum_of_windows(result, axis, rank(x), windows)
        return op.Div(result, number(divisor_override, x))
    window = math.prod(kernel)
    means = torchs(x, kernel, stride, padding, False, True)
    return op.Mul(means, number(window / divisor_override, x))


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    **{f"aten::adaptive_avg_pool{axes}d": partial(_onnx_adaptive_mean, axes) for axes in (1, 2, 3)},
    **{f"aten::_adaptive_avg_pool{axes}d": partial(_onnx_adaptive_mean, axes) for axes in (2, 3)},
    **{f"aten::adaptive_max_pool{axes}d": partial(_onnx_adaptive_maximum, axes) for axes in (1, 2, 3)},
    **{f"aten::avg_pool{axes}d": partial(_onnx_mean, axes) for axes in (2, 3)},
    "anyshape_sizes::adaptive_max_pool": lambda x, sizes: _onnx_adaptive_maximum(len(sizes), x, sizes),
    "anyshape_sizes::pool": _onnx_pool,
}
