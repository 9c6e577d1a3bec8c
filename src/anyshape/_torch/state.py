"""A module's state at one moment, and the way back: every call starts from the module as it was handed to us."""

from __future__ import annotations

import collections
import contextlib
import random
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import nn

LOCK = threading.RLock()
"""A module's state, torch's patches and the process's output are shared: one thread at a time."""
_DEEPEST = 4
_SMALL = 2**20


class ModuleState:
    """The attributes, buffers and flags of a module at one moment; `restore` puts them back.

    Parameters are not copied: forward does not change them. Buffers and tensors kept as attributes are: forward may.
    Containers are restored in place, so that whoever else holds one sees the same object.
    """

    def __init__(self, module: nn.Module) -> None:
        found: dict[int, Any] = {}
        for part in module.modules():
            _collect(vars(part), found, depth=0)
        self._containers = [(value, value.copy()) for value in found.values() if not isinstance(value, torch.Tensor)]
        tensors = [value for value in found.values() if isinstance(value, torch.Tensor)]
        self._tensors = [(tensor, tensor._version, tensor.detach().clone()) for tensor in tensors]

    def restore(self) -> None:
        for container, kept in self._containers:
            container.clear()
            container.update(kept) if isinstance(container, (dict, set)) else container.extend(kept)
        for index, (tensor, version, copy) in enumerate(self._tensors):
            # writing through `.data` does not count as a new version
            if tensor._version != version or (tensor.numel() < _SMALL and not torch.equal(tensor, copy)):
                with torch.no_grad():
                    tensor.copy_(copy)
                self._tensors[index] = (tensor, tensor._version, copy)


def _collect(value: Any, found: dict[int, Any], *, depth: int) -> None:
    """The containers below `value`, and the tensors in them that a forward may change, by identity."""
    if id(value) in found or depth > _DEEPEST:
        return
    if isinstance(value, torch.Tensor):
        if not isinstance(value, nn.Parameter) and not value.is_inference() and value.layout is torch.strided:
            found[id(value)] = value
    elif isinstance(value, (dict, list, set, collections.deque)):
        found[id(value)] = value
        for inner in value.values() if isinstance(value, dict) else value:
            _collect(inner, found, depth=depth + 1)


@contextlib.contextmanager
def untouched(module: nn.Module) -> Iterator[None]:
    """Inside, the module is in eval mode; afterwards it, its state and every random generator are as before."""
    with LOCK, _random_state():
        state = ModuleState(module)
        try:
            for part in module.modules():
                part.training = False
            yield
        finally:
            state.restore()


@contextlib.contextmanager
def _random_state() -> Iterator[None]:
    ours, theirs = random.getstate(), np.random.get_state()  # noqa: NPY002  the user's code may draw from it
    with torch.random.fork_rng():
        try:
            yield
        finally:
            random.setstate(ours)
            np.random.set_state(theirs)  # noqa: NPY002
