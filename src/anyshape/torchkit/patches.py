"""Everything that is put in another's place for a while and taken out again: names, private names of torch, options of
its configuration, and answers to calls of torch functions.

A private name that this torch does not have is left alone: who replaces it does without.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import CodeType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from anyshape.source.live_code import LOCK
from anyshape.source.spans import is_users
from anyshape.torchkit.private_names import lookup, place_of

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
def replaced(name: str, make: Callable[[Any], Any]) -> Iterator[None]:
    """Inside, a private name of torch stands for what `make` makes of the present object."""
    place = place_of(name)
    with contextlib.nullcontext() if place is None else patched(*place, make(getattr(*place))):
        yield


def observed(name: str, hook: Callable[..., None], *, after: bool = False) -> contextlib.AbstractContextManager[None]:
    """Inside, `hook` sees every call of a private function or method; `after` it, with the result first."""
    return replaced(name, lambda original: heard(original, hook, after=after))


def heard(original: Callable[..., Any], hook: Callable[..., None], *, after: bool = False) -> Callable[..., Any]:
    """The same function, of whose calls `hook` hears."""

    def method(*args: Any, **kwargs: Any) -> Any:
        if not after:
            hook(*args, **kwargs)
        result = original(*args, **kwargs)
        if after:
            hook(result, *args, **kwargs)
        return result

    return method


@contextlib.contextmanager
def configured(name: str, value: object) -> Iterator[None]:
    """Inside, an option of one of torch's configurations has another value."""
    place = place_of(name)
    with contextlib.nullcontext() if place is None else place[0].patch({place[1]: value}):
        yield


# ---- gradients


@contextlib.contextmanager
def gradients_kept_off(noticed: Callable[[], None]) -> Iterator[None]:
    """Inside, gradients are off and cannot be switched on; `noticed` hears of it when the model's code wants to."""

    def make(original: Callable[[bool], None]) -> Callable[[bool], None]:
        def set_grad_enabled(mode: bool) -> None:
            if mode:
                if is_users(_entering_code().co_filename):
                    noticed()
            else:
                original(mode)

        return set_grad_enabled

    # off before: who switches them off inside must find them off, or would switch them on again
    with torch.no_grad(), replaced("torch._C._set_grad_enabled", make):
        yield


_GRADIENT_FILES = ("grad_mode.py", "_contextlib.py")


def _entering_code() -> CodeType:
    """Who entered torch's context manager for gradients, or called a function under its decorator."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.endswith(_GRADIENT_FILES):
        frame = frame.f_back
    return frame.f_code


# ---- answers to calls


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
    pop, push = lookup("torch.overrides._pop_mode"), lookup("torch.overrides._push_mode")
    count = lookup("torch._C._len_torch_function_stack")
    kept = [] if None in (pop, push, count) else [pop() for _ in range(count())]
    try:
        yield
    finally:
        for mode in reversed(kept):
            push(mode)
