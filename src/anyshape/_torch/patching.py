"""Names of torch and of modules replaced for a while, and calls of torch functions answered by others."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from torch.overrides import TorchFunctionMode

from anyshape._torch.state import LOCK

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
