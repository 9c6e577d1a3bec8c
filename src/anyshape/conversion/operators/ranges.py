"""Values spread over a length that is a size: `torch.linspace(0, 1, n)`, `torch.hann_window(n)`, sampling grids.

Recognised: `linspace`, `logspace` and windows of a symbolic length, which torch pins while it traces. Put there: the
same values from `arange` and arithmetic on it. The grid of `F.affine_grid` is translated alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import onnx_ir as ir
import torch

from anyshape.conversion.operators.arithmetic import computed_in_the_file
from anyshape.conversion.operators.onnx_words import as_vector, counted, number, op, size_of, vector, whole
from anyshape.conversion.operators.repair import Answer, Repair, Used, all_patched, is_size, sym_max

# ---- the repair


def _linspace(genuine: Answer, used: Used) -> Answer:
    """As torch computes it on a CPU: from the start up to the middle, from the end for the rest."""

    def linspace(start: Any, end: Any, steps: Any, **options: Any) -> Any:
        if not is_size(steps) or isinstance(start, torch.Tensor) or isinstance(end, torch.Tensor):
            return genuine(start, end, steps, **options)
        used(computed_in_the_file("torch.linspace()"))
        dtype = options.pop("dtype", None) or torch.get_default_dtype()
        index = torch.arange(steps, dtype=dtype, **options)
        step = torch.full((), 1.0, dtype=dtype, **options) * (end - start) / sym_max(steps - 1, 1)
        rising, falling = start + index * step, end - (steps - 1 - index) * step
        middle = sym_max(steps // 2, 2 - steps)  # of one step, the start
        return torch.where(torch.arange(steps, **options) < middle, rising, falling)

    return linspace


def _logspace(genuine: Answer, linspace: Answer) -> Answer:
    def logspace(start: Any, end: Any, steps: Any, base: Any = 10.0, **options: Any) -> Any:
        if not is_size(steps):
            return genuine(start, end, steps, base, **options)
        return torch.pow(base, linspace(start, end, steps, **options))

    return logspace


_WINDOWS = {
    "hann_window": (0.5, -0.5), "hamming_window": (0.54, -0.46), "blackman_window": (0.42, -0.5, 0.08),
}  # fmt: skip
"""What stands before the cosines of 0, 1 and 2 times the angle."""


def _window(name: str, used: Used) -> Answer:
    """A sum of cosines over the length, or over one less where it is not periodic; of one value, 1."""
    genuine: Answer = getattr(torch, name)

    def window(length: Any, periodic: bool = True, **options: Any) -> Any:
        if not is_size(length) or not options.keys() <= {"dtype", "device"}:
            return genuine(length, periodic, **options)
        used(computed_in_the_file(f"torch.{name}()"))
        whole = length if periodic else sym_max(length - 1, 1)
        angle = torch.arange(length, dtype=torch.float64, device=options.get("device")) * (2 * math.pi / whole)
        value = torch.zeros_like(angle)
        for order, weight in enumerate(_WINDOWS[name]):
            value = value + weight * torch.cos(order * angle)
        one = torch.zeros_like(angle, dtype=torch.int64) + length == 1
        return torch.where(one, 1.0, value).to(options.get("dtype") or torch.get_default_dtype())

    return window


def _spread_at_run_time(used: Used) -> AbstractContextManager[None]:
    linspace = _linspace(torch.linspace, used)
    replaced = {"linspace": linspace, "logspace": _logspace(torch.logspace, linspace)}
    replaced |= {name: _window(name, used) for name in _WINDOWS}
    return all_patched((torch, *replacement) for replacement in replaced.items())


RANGES = Repair("values spread over a size", _spread_at_run_time)


# ---- ONNX


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


TRANSLATIONS: dict[str, Callable[..., Any]] = {"aten::affine_grid_generator": _affine_grid}
