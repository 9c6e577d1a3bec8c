"""A module's state at one moment, and the way back: every call starts from the module as it was handed to us."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import nn


class ModuleState:
    """The attributes, buffers and flags of a module at one moment; `restore` puts them back.

    Parameters are not copied: forward does not change them. Buffers and tensors kept as attributes are: forward may.
    """

    def __init__(self, module: nn.Module) -> None:
        self._attributes = [(part, _shallow(vars(part))) for part in module.modules()]
        kept = {id(t): t for part in module.modules() for t in _tensors_of(part)}
        self._copies = [(tensor, tensor._version, tensor.detach().clone()) for tensor in kept.values()]

    def restore(self) -> None:
        for part, attributes in self._attributes:
            vars(part).clear()
            vars(part).update(_shallow(attributes))
        for index, (tensor, version, copy) in enumerate(self._copies):
            if tensor._version != version:
                with torch.no_grad():
                    tensor.copy_(copy)
                self._copies[index] = (tensor, tensor._version, copy)


def _shallow(attributes: dict[str, Any]) -> dict[str, Any]:
    """A copy in which the containers are copies too, so that what forward appends is forgotten."""
    return {k: v.copy() if isinstance(v, (dict, list, set)) else v for k, v in attributes.items()}


def _tensors_of(part: nn.Module) -> Iterator[torch.Tensor]:
    values = [*part._buffers.values(), *(v for v in vars(part).values() if not isinstance(v, nn.Parameter))]
    for value in values:
        if isinstance(value, torch.Tensor) and not value.is_inference() and value.layout is torch.strided:
            yield value


@contextlib.contextmanager
def untouched(module: nn.Module) -> Iterator[None]:
    """Inside, the module is in eval mode; afterwards it, its state and every random generator are as before."""
    state = ModuleState(module)
    with _random_state():
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
