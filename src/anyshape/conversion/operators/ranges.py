"""Values spread over a length that is a size: `torch.linspace(0, 1, n)`, `torch.logspace`, `torch.hann_window(n)`.

torch pins their length while it traces. The same values come from `arange` and arithmetic on it.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch

from anyshape.conversion.operators.arithmetic import sentence
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
