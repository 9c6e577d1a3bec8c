"""Pooling whose windows are given by sizes: `F.avg_pool2d(x, x.shape[2:])`, `F.adaptive_max_pool2d(x, (None, 4))`.

Recognised: calls of the pooling functions with a symbolic number of windows, kernel, stride or padding. Torch's
operators take plain numbers there, which pins the sizes. Put there: operators that take sizes, translated by
`conversion/operators/pooling.py` to the very windows that torch's documentation defines.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir
import torch
import torch.nn.functional as F  # noqa: N812  everybody's name for it
from torch import SymInt, Tensor

from anyshape.conversion.operators.onnx_words import (
    INT64,
    as_vector,
    counted,
    is_size_of,
    moved,
    op,
    rank,
    size_of,
    whole,
)
from anyshape.conversion.operators.repair import Repair, Used, answered
from anyshape.conversion.speed.registration import register_fake
from anyshape.torchkit.patches import patched

Function = Callable[..., Any]
_pooled: Function = F.adaptive_avg_pool2d  # typed for plain numbers


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


torch.library.define("anyshape_sizes::adaptive_max_pool", "(Tensor x, SymInt[] sizes) -> (Tensor, Tensor)")
register_fake("anyshape_sizes::adaptive_max_pool", _shape_of_maxima)
torch.library.define(
    "anyshape_sizes::pool",
    "(Tensor x, str kind, SymInt[] kernel, SymInt[] stride, SymInt[] padding, bool ceil_mode, bool count_include_pad)"
    " -> Tensor",
)
register_fake("anyshape_sizes::pool", _shape_of_pooled)


def _spread(given: Any, spatial: int) -> list[Any]:
    numbers = list(given) if isinstance(given, tuple | list) else [given]
    return numbers * spatial if len(numbers) == 1 else numbers


def _holds_size(*groups: Sequence[Any]) -> bool:
    return any(isinstance(number, SymInt) for group in groups for number in group)


def _adaptive(used: Used, spatial: int, name: str, *, indices: bool) -> Function:
    def answer(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:  # noqa: A002
        given = _spread(output_size, spatial)
        sizes = [size if wish is None else wish for wish, size in zip(given, input.shape[-spatial:], strict=True)]
        if not _holds_size(sizes):
            return NotImplemented
        used(f"{name}: windows by the size at run time")
        values, places = torch.ops.anyshape_sizes.adaptive_max_pool(input, sizes)
        return (values, places) if indices or return_indices else values

    return answer


def _average_in_one_axis(used: Used) -> Function:
    def answer(input: Tensor, output_size: Any) -> Any:  # noqa: A002
        (size,) = _spread(output_size, 1)
        if not isinstance(size, SymInt):
            return NotImplemented
        used("F.adaptive_avg_pool1d: windows by the size at run time")
        # the operator for two axes takes sizes
        return _pooled(input.unsqueeze(-2), (1, size)).squeeze(-2)

    return answer


def _average(used: Used, spatial: int) -> Function:
    def answer(
        input: Tensor,  # noqa: A002
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: Any = None,
    ) -> Any:
        windows = _windows(kernel_size, stride, padding, spatial)
        if divisor_override is not None or not _holds_size(*windows):
            return NotImplemented
        used(f"F.avg_pool{spatial}d: windows by the size at run time")
        return torch.ops.anyshape_sizes.pool(input, "avg", *windows, ceil_mode, count_include_pad)

    return answer


def _maximum(used: Used, spatial: int) -> Function:
    def answer(
        input: Tensor,  # noqa: A002
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        windows = _windows(kernel_size, stride, padding, spatial)
        dilated = any(step != 1 for step in _spread(dilation, spatial))
        if dilated or return_indices or not _holds_size(*windows):
            return NotImplemented
        used(f"F.max_pool{spatial}d: windows by the size at run time")
        return torch.ops.anyshape_sizes.pool(input, "max", *windows, ceil_mode, True)

    return answer


def _windows(kernel: Any, stride: Any, padding: Any, spatial: int) -> tuple[list[Any], list[Any], list[Any]]:
    kernels = _spread(kernel, spatial)
    strides = kernels if stride is None or stride == [] else _spread(stride, spatial)
    return kernels, strides, _spread(padding, spatial)


def _answers(used: Used) -> dict[tuple[Any, str], Function]:
    answers: dict[tuple[Any, str], Function] = {
        (F, "adaptive_avg_pool1d"): _average_in_one_axis(used),
        (torch, "adaptive_max_pool1d"): _adaptive(used, 1, "torch.adaptive_max_pool1d", indices=True),
    }
    for spatial in (1, 2, 3):
        name = f"adaptive_max_pool{spatial}d"
        answers[F, name] = _adaptive(used, spatial, f"F.{name}", indices=False)
        answers[F, f"{name}_with_indices"] = _adaptive(used, spatial, f"F.{name}", indices=True)
        answers[F, f"avg_pool{spatial}d"] = _average(used, spatial)
        answers[F, f"max_pool{spatial}d"] = answers[torch, f"max_pool{spatial}d"] = _maximum(used, spatial)
    return answers


@contextlib.contextmanager
def _apply(used: Used) -> Iterator[None]:
    with answered(_answers(used)):
        yield


POOLING = Repair("pooling", _apply)


def _over_two_axes(genuine: Function, used: Used) -> Function:
    """Torch looks at the traced length of one axis; with a row of one before it, there are two, and it does not."""

    def max_pool1d(
        input: Tensor,  # noqa: A002
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> Any:
        kernels, strides, paddings = _windows(kernel_size, stride, padding, 1)
        if not isinstance(input.shape[-1], SymInt) or _holds_size(kernels, strides, paddings):
            return genuine(input, kernel_size, stride, padding, dilation, ceil_mode)
        used("F.max_pool1d: as a pool over two axes")
        rows = ((1, *kernels), (1, *strides), (0, *paddings), (1, *_spread(dilation, 1)))
        return torch.max_pool2d(input.unsqueeze(-2), *rows, ceil_mode).squeeze(-2)

    return max_pool1d


@contextlib.contextmanager
def _apply_to_one_axis(used: Used) -> Iterator[None]:
    with patched(torch, "max_pool1d", _over_two_axes(torch.max_pool1d, used)):
        yield


POOLING_OF_ONE_AXIS = Repair("maxima along one axis", _apply_to_one_axis, always=True)

Size = int | ir.Value


@dataclass(frozen=True)
class Windows:
    """The windows along one axis, as vectors."""

    starts: Any
    ends: Any
    longest: Any
    counts: Any
    """What the sum over each window is divided by for its mean."""


def _onnx_adaptive(length: ir.Value, windows: Size) -> Windows:
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


def _onnx_maximum(x: ir.Value, axis: int, windows: Windows) -> Any:
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
        for axis, many in zip(range(axes - spatial, axes), _onnx_spread(output_size, spatial), strict=True):
            length = size_of(x, axis)
            if many == 1:
                result = op.ReduceMean(result, whole(axis), keepdims=1)
            elif not is_size_of(many, x, axis):
                result = _mean(result, axis, axes, length, _onnx_adaptive(length, many))
        return result

    return pool


def _adaptive_maximum(spatial: int) -> Callable[..., Any]:
    """Values and places, the places counted over all spatial axes. What nobody uses is dropped with its nodes."""

    def pool(x: ir.Value, output_size: Sequence[Size]) -> tuple[Any, Any]:
        axes, sizes = rank(x), _onnx_spread(output_size, spatial)
        places: list[Any] = []
        result = op.Identity(x)
        for axis in reversed(range(axes - spatial, axes)):
            many, length = sizes[axis - axes], size_of(x, axis)
            windows = None if many == 1 else _onnx_adaptive(length, many)
            here = _place(result, axis, axes, windows)
            places = [here, *(op.GatherElements(place, here, axis=axis) for place in places)]
            if windows is None:
                result = op.ReduceMax(result, whole(axis), keepdims=1)
            elif not is_size_of(many, x, axis):
                result = _onnx_maximum(result, axis, windows)
        return result, _counted_together(x, places)

    return pool


def _counted_together(x: ir.Value, places: Sequence[Any]) -> Any:
    """One number for a place along several axes, as torch counts them: row by row."""
    axes = rank(x)
    flat = places[0]
    for axis, place in zip(range(axes - len(places) + 1, axes), places[1:], strict=True):
        flat = op.Add(op.Mul(flat, size_of(x, axis)), place)
    return op.Cast(flat, to=INT64)


def _onnx_spread(sizes: Sequence[Size], spatial: int) -> list[Size]:
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
        result = _mean(result, axis, axes, length, windows) if kind == "avg" else _onnx_maximum(result, axis, windows)
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
