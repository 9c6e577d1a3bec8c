"""Values spread over a length that is a size: `torch.linspace(0, 1, n)`, `torch.logspace`, `torch.hann_window(n)`.

torch pins their length while it traces. The same values come from `arange` and arithmetic on it.
"""

from __future__ import annotations

import contextlib
import importlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import onnx_ir as ir
import torch

from anyshape.conversion.operators.arithmetic import sentence
from anyshape.conversion.operators.onnx_words import INT64, as_vector, counted, number, op, size_of, vector, whole
from anyshape.conversion.operators.repair import Repair, Used
from anyshape.torchkit.patches import patched

Function = Callable[..., Any]
_larger: Function = torch.sym_max  # torch does not type it


def _is_size(value: Any) -> bool:
    return isinstance(value, torch.SymInt)


def _linspace(genuine: Function, used: Used) -> Function:
    """As torch computes it on a CPU: from the start up to the middle, from the end for the rest."""

    def linspace(start: Any, end: Any, steps: Any, **options: Any) -> Any:
        if not _is_size(steps) or isinstance(start, torch.Tensor) or isinstance(end, torch.Tensor):
            return genuine(start, end, steps, **options)
        used(sentence("torch.linspace()"))
        dtype = options.pop("dtype", None) or torch.get_default_dtype()
        index = torch.arange(steps, dtype=dtype, **options)
        step = torch.full((), 1.0, dtype=dtype, **options) * (end - start) / _larger(steps - 1, 1)
        rising, falling = start + index * step, end - (steps - 1 - index) * step
        middle = _larger(steps // 2, 2 - steps)  # of one step, the start
        return torch.where(torch.arange(steps, **options) < middle, rising, falling)

    return linspace


def _logspace(genuine: Function, linspace: Function) -> Function:
    def logspace(start: Any, end: Any, steps: Any, base: Any = 10.0, **options: Any) -> Any:
        if not _is_size(steps):
            return genuine(start, end, steps, base, **options)
        return torch.pow(base, linspace(start, end, steps, **options))

    return logspace


_WINDOWS = {
    "hann_window": (0.5, -0.5), "hamming_window": (0.54, -0.46), "blackman_window": (0.42, -0.5, 0.08),
}  # fmt: skip
"""What stands before the cosines of 0, 1 and 2 times the angle."""


def _window(name: str, used: Used) -> Function:
    """A sum of cosines over the length, or over one less where it is not periodic; of one value, 1."""
    genuine: Function = getattr(torch, name)

    def window(length: Any, periodic: bool = True, **options: Any) -> Any:
        if not _is_size(length) or not options.keys() <= {"dtype", "device"}:
            return genuine(length, periodic, **options)
        used(sentence(f"torch.{name}()"))
        whole = length if periodic else _larger(length - 1, 1)
        angle = torch.arange(length, dtype=torch.float64, device=options.get("device")) * (2 * math.pi / whole)
        value = torch.zeros_like(angle)
        for order, weight in enumerate(_WINDOWS[name]):
            value = value + weight * torch.cos(order * angle)
        one = torch.zeros_like(angle, dtype=torch.int64) + length == 1
        return torch.where(one, 1.0, value).to(options.get("dtype") or torch.get_default_dtype())

    return window


@contextlib.contextmanager
def _apply(used: Used) -> Iterator[None]:
    linspace = _linspace(torch.linspace, used)
    replaced = {"linspace": linspace, "logspace": _logspace(torch.logspace, linspace)}
    replaced |= {name: _window(name, used) for name in _WINDOWS}
    with contextlib.ExitStack() as stack:
        for name, function in replaced.items():
            stack.enter_context(patched(torch, name, function))
        yield


RANGES = Repair("values spread over a size", _apply)


def _centres(size: Any, like: ir.Value, *, align_corners: bool) -> Any:
    """Evenly spread from -1 to 1: the outermost at the corners, or half a step inside; one alone is in the middle."""
    many = as_vector(size)
    steps = op.Sub(op.Add(op.Mul(counted(many), whole(2)), whole(1)), many)
    span = op.Max(op.Sub(many, whole(1)), whole(1)) if align_corners else many
    return op.Div(op.CastLike(steps, like), op.CastLike(span, like))


def _affine_grid(theta: ir.Value, size: Sequence[Any], align_corners: bool) -> Any:
    """The transformation of every place: x, y (and z) are counted from the last axis."""
    spatial = list(size)[2:]
    shape = vector(spatial)
    places = []
    for axis in reversed(range(len(spatial))):
        line = _centres(spatial[axis], theta, align_corners=align_corners)
        later = len(spatial) - 1 - axis
        column = op.Unsqueeze(line, whole(*range(1, 1 + later))) if later else line
        places.append(op.Reshape(op.Expand(column, shape), whole(-1, 1)))
    ones = op.Expand(number(1, theta), op.Shape(places[0]))
    base = op.Unsqueeze(op.Concat(*places, ones, axis=1), whole(0))
    moved = op.MatMul(base, op.Transpose(theta, perm=[0, 2, 1]))
    return op.Reshape(moved, op.Concat(size_of(theta, 0), shape, whole(len(spatial)), axis=0))


def _add_frames(frames: ir.Value, input_sizes: Sequence[Any], dim: int, size: int, step: int) -> Any:
    """The reverse of `unfold`: every frame is added where it was cut out."""
    axes = len(input_sizes)
    axis = dim % axes if axes else 0
    order = [*range(axis + 1), axes, *range(axis + 1, axes)]
    beside = op.Transpose(frames, perm=order)  # each frame's values right behind its number
    kept = [size_of(frames, other) for other in range(axes)]
    in_a_row = op.Reshape(beside, vector([*kept[:axis], -1, *kept[axis + 1 :]]))
    # torch lets the frames of one batch stand for all
    values = op.Expand(in_a_row, vector([*input_sizes[:axis], 1, *input_sizes[axis + 1 :]]))
    starts = op.Mul(op.Unsqueeze(counted(size_of(frames, axis)), whole(1)), whole(step))
    places = op.Add(starts, op.Unsqueeze(counted(size), whole(0)))
    column = op.Reshape(places, whole(*(-1 if a == axis else 1 for a in range(axes))))
    empty = op.Expand(number(0, frames), vector(input_sizes))
    return op.ScatterElements(empty, op.Expand(column, op.Shape(values)), values, axis=axis, reduction="add")


def _histogram(x: ir.Value, bins: int = 100, min: float = 0, max: float = 0) -> Any:  # noqa: A002  torch's names
    """Without a range, from the smallest value to the largest, or one to each side where they are the same."""
    if min != max:
        library = importlib.import_module("onnxscript.function_libs.torch_lib.ops.core")
        return library.aten_histc(x, bins, min, max)
    flat = op.Reshape(x, whole(-1))
    low, high = op.ReduceMin(flat, whole(0), keepdims=1), op.ReduceMax(flat, whole(0), keepdims=1)
    one = number(1, x)
    same = op.Equal(low, high)
    low, high = op.Where(same, op.Sub(low, one), low), op.Where(same, op.Add(high, one), high)
    share = op.Mul(op.Div(op.Sub(flat, low), op.Sub(high, low)), number(bins, x))
    place = op.Min(op.Cast(op.Floor(share), to=INT64), whole(bins - 1))
    zeros = op.Expand(number(0, x), whole(bins))
    return op.ScatterElements(zeros, place, op.Expand(one, op.Shape(flat)), axis=0, reduction="add")


def _average(spatial: int) -> Callable[..., Any]:
    """`divisor_override` replaces the size of the window, which torch's translation ignores."""

    def pool(
        x: ir.Value,
        kernel_size: Any,
        stride: Any = (),
        padding: Any = (0,),
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Any:
        library = importlib.import_module("onnxscript.function_libs.torch_lib.ops.nn")
        torchs = getattr(library, f"aten_avg_pool{spatial}d")
        if divisor_override is None:
            return torchs(x, kernel_size, stride, padding, ceil_mode, count_include_pad)
        if ceil_mode:
            raise NotImplementedError("divisor_override with ceil_mode")
        kernel = list(kernel_size) * spatial if len(kernel_size) == 1 else list(kernel_size)
        window = math.prod(kernel)
        means = torchs(x, kernel, stride, padding, False, True)
        return op.Mul(means, number(window / divisor_override, x))

    return pool


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "aten::affine_grid_generator": _affine_grid,
    "aten::unfold_backward": _add_frames,
    "aten::histc": _histogram,
    "aten::avg_pool2d": _average(2),
    "aten::avg_pool3d": _average(3),
}
