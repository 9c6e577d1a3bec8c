"""Running a module in other arithmetic: in float64, or with every result jittered by one rounding.

Both are dispatch modes, so the module's own code runs unchanged. Operators that compare the types of their arguments
before they are dispatched (convolutions) need wide parameters, too: these are lent for the time of a run, unless they
are so large that a second copy would hurt.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

_BELOW_FLOAT64 = (torch.float16, torch.bfloat16, torch.float32)


class _Upcast(TorchDispatchMode):
    """Every operator computes in `wide`, from the first to the last."""

    supports_higher_order_operators = True

    def __init__(self, narrow: tuple[torch.dtype, ...], wide: torch.dtype) -> None:
        super().__init__()
        self._narrow, self._wide = narrow, wide
        self.largest = 0
        """The bytes of the largest result: what a prediction of memory starts from."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        wide_args, wide_kwargs = pytree.tree_map(self._widen, (args, kwargs or {}))
        result = func(*wide_args, **wide_kwargs)
        if _is_mutable(func):
            self._write_back(args, wide_args)
        return pytree.tree_map(self._widen, result)

    def _widen(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            self.largest = max(self.largest, value.numel() * value.element_size())
            if value.dtype == torch.complex64 and self._wide == torch.float64:
                return value.to(torch.complex128)
            return value.to(self._wide) if value.dtype in self._narrow else value
        return self._wide if isinstance(value, torch.dtype) and value in self._narrow else value

    def _write_back(self, narrow: Any, wide: Any) -> None:
        """An operator that writes in place wrote to the wide copy: the caller's tensor must see it."""
        for old, new in zip(pytree.tree_leaves(narrow), pytree.tree_leaves(wide), strict=True):
            if isinstance(old, torch.Tensor) and old is not new:
                old.copy_(new)


class _Jitter(TorchDispatchMode):
    """Every floating result is moved by about one rounding, at random."""

    supports_higher_order_operators = True

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._generator = torch.Generator().manual_seed(seed)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        result = func(*args, **(kwargs or {}))
        if not hasattr(func, "_schema"):
            return pytree.tree_map(self._move, result)
        if _is_mutable(func) or torch.Tag.nondeterministic_seeded in func.tags or _is_view(func):
            return result
        return pytree.tree_map(self._move, result)

    def _move(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.numel() == 0:
            return value
        if value.is_complex():
            return torch.view_as_complex(self._move(torch.view_as_real(value.resolve_conj()).contiguous()))
        if not value.is_floating_point() or _is_whole_number(value):
            return value
        noise = torch.rand(value.shape, generator=self._generator, dtype=torch.float32).to(value.device) * 2 - 1
        step = torch.finfo(value.dtype).eps
        moved = value + (value * noise * step).to(value.dtype)
        moved = torch.where(value == 0, (noise * torch.finfo(value.dtype).tiny).to(value.dtype), moved)
        return torch.where(torch.isfinite(value), moved, value)  # an inf moved by a part of itself would be NaN


def _is_whole_number(value: torch.Tensor) -> bool:
    """As arithmetic on sizes makes it, exactly: moved by a rounding it would be another size after `ceil`."""
    return value.ndim == 0 and bool(value == value.round())


def _is_mutable(func: Any) -> bool:
    """Whether an operator writes to its arguments; torch.cond and its kin do not."""
    return hasattr(func, "_schema") and bool(func._schema.is_mutable)


def _is_view(func: Any) -> bool:
    return any(r.alias_info is not None for r in func._schema.returns)


@contextlib.contextmanager
def _quiet_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


_LARGEST_COPY = 512 * 2**20


@contextlib.contextmanager
def _lent_parameters(module: nn.Module, narrow: tuple[torch.dtype, ...], wide: torch.dtype) -> Iterator[None]:
    """Inside, the module's parameters and buffers hold wide copies; afterwards their own storage again."""
    parameters = [p for p in module.parameters() if p.dtype in narrow and not p.is_inference()]
    buffers = [
        (part, name) for part in module.modules() for name, b in part.named_buffers(recurse=False) if b.dtype in narrow
    ]
    kept = [(parameter, parameter.data) for parameter in parameters]
    aside = [(part, name, part._buffers[name]) for part, name in buffers]
    if sum(data.numel() * data.element_size() for _, data in kept) > _LARGEST_COPY:
        yield
        return
    try:
        for parameter, data in kept:
            parameter.data = data.to(wide)
        for part, name, buffer in aside:
            assert buffer is not None
            part._buffers[name] = buffer.to(wide)
        yield
    finally:
        for parameter, data in kept:
            parameter.data = data
        for part, name, buffer in aside:
            part._buffers[name] = buffer


@contextlib.contextmanager
def computing_in(dtype: torch.dtype, module: nn.Module) -> Iterator[_Upcast]:
    """Inside, everything of this module below `dtype` is computed in `dtype`."""
    narrow = tuple(d for d in _BELOW_FLOAT64 if torch.finfo(d).bits < torch.finfo(dtype).bits)
    default = torch.get_default_dtype()
    mode = _Upcast(narrow, dtype)
    # mkldnn's recurrent kernels know float32 alone; switching it off warns about hardware that nobody asked for
    lent = _lent_parameters(module, narrow, dtype)
    with _quiet_warnings(), torch.backends.mkldnn.flags(enabled=False), lent:
        torch.set_default_dtype(dtype)
        try:
            with mode:
                yield mode
        finally:
            torch.set_default_dtype(default)


def run_jittered(run: Callable[[], Any], seed: int) -> Any:
    """What `run` returns when every operator's result moves by a rounding."""
    with _Jitter(seed):
        return run()
