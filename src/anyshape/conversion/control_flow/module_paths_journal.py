"""What a run sets on modules: to be undone before the same code runs again, and joined when all runs are done."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from anyshape.torchkit.patches import patched

_ABSENT = object()
Key = tuple[torch.nn.Module, str]


class Journal:
    """The attributes of modules that were set while it was open, and what they were before."""

    def __init__(self) -> None:
        self.before: dict[Key, Any] = {}
        self._after: dict[Key, Any] = {}

    def note(self, module: torch.nn.Module, name: str) -> None:
        if (module, name) not in self.before:
            self.before[module, name] = getattr(module, name, _ABSENT)

    def close(self) -> None:
        self._after = {key: getattr(*key, _ABSENT) for key in self.before}

    def get(self, key: Key, otherwise: Any) -> Any:
        """What the attribute was when the journal was closed."""
        return self._after.get(key, otherwise)


def put(values: Mapping[Key, Any]) -> None:
    """Set these attributes, or delete them where there were none."""
    for (module, name), value in values.items():
        if value is not _ABSENT:
            setattr(module, name, value)
        elif hasattr(module, name):
            delattr(module, name)


_OPEN: list[Journal] = []


@contextlib.contextmanager
def journal() -> Iterator[Journal]:
    """Inside `watching`, what is set from here on is noted."""
    opened = Journal()
    _OPEN.append(opened)
    try:
        yield opened
    finally:
        _OPEN.remove(opened)
        opened.close()


@contextlib.contextmanager
def watching() -> Iterator[None]:
    with (
        patched(torch.nn.Module, "__setattr__", _noting(torch.nn.Module.__setattr__)),
        patched(torch.nn.Module, "__delattr__", _noting(torch.nn.Module.__delattr__)),
    ):
        yield


def _noting(original: Callable[..., None]) -> Callable[..., None]:
    def change(module: torch.nn.Module, name: str, *value: Any) -> None:
        # torch keeps the constants of a trace on a plain module of its own
        if type(module) is not torch.nn.Module:
            for opened in _OPEN:
                opened.note(module, name)
        original(module, name, *value)

    return change
