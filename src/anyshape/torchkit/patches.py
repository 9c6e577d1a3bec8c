"""Names of torch and of modules replaced for a while, and calls of torch functions answered by others."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import CodeType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from anyshape.source.live_code import LOCK
from anyshape.source.stacks import is_users

_ABSENT = object()


@contextlib.contextmanager
def patched(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Inside, `owner.name` is `value`. A name that was found elsewhere (a base class, a module's `__getattr__`) is
    only hidden.
    """
    with LOCK:
        kept = vars(owner).get(name, _ABSENT)
        setattr(owner, name, value)
        try:
            yield
        finally:
            if kept is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, kept)


@contextlib.contextmanager
def gradients_kept_off(noticed: Callable[[], None]) -> Iterator[None]:
    """Inside, gradients are off and cannot be switched on; `noticed` hears of it when the model's code wants to."""
    original = torch._C._set_grad_enabled

    def set_grad_enabled(mode: bool) -> None:
        if mode:
            if is_users(_caller().co_filename):
                noticed()
        else:
            original(mode)

    # off before: who switches them off inside must find them off, or would switch them on again
    with torch.no_grad(), patched(torch._C, "_set_grad_enabled", set_grad_enabled):
        yield


_GRADIENT_FILES = ("grad_mode.py", "_contextlib.py")


def _caller() -> CodeType:
    """Who entered torch's context manager for gradients, or called a function under its decorator."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.endswith(_GRADIENT_FILES):
        frame = frame.f_back
    return frame.f_code


class Answering(TorchFunctionMode):
    """Calls of some torch functions are answered by others, which may decline with NotImplemented.

    With any such mode on, attention layers leave their fast path: a repair that needs one is not for healthy models.
    """

    def __init__(self, answers: Mapping[Any, Callable[..., Any]]) -> None:
        super().__init__()
        self._answers = answers

    def __torch_function__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        answer = self._answers.get(func)
        if answer is not None:
            result = answer(*args, **kwargs)
            if result is not NotImplemented:
                return result
        return func(*args, **kwargs)


@contextlib.contextmanager
def without_answers() -> Iterator[None]:
    """Inside, nobody is asked about calls of torch functions: a program that is run again was answered in its trace."""
    overrides: Any = torch.overrides
    kept = []
    if all(hasattr(overrides, name) for name in ("_pop_mode", "_push_mode")):
        kept = [overrides._pop_mode() for _ in range(torch._C._len_torch_function_stack())]
    try:
        yield
    finally:
        for mode in reversed(kept):
            overrides._push_mode(mode)
