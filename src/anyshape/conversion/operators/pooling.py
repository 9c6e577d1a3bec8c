"""Pooling whose windows are given by sizes: `F.avg_pool2d(x, x.shape[2:])`, `F.adaptive_max_pool2d(x, (None, 4))`.

Recognised: calls of the pooling functions with a symbolic number of windows, kernel, stride or padding. Torch's
operators take plain numbers there, which pins the sizes. Put there: operators that take sizes, translated by
`conversion/operators/pooling_pooling.py` to the very windows that torch's documentation defines.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  everybody's name for it
from torch import SymInt, Tensor

from anyshape.conversion.operators.repair import Repair, Used
from anyshape.conversion.operators.repair_answering import answered
from anyshape.torchkit.custom_operators import register_fake
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
