"""The outputs of a call as named leaves, and the target as a module from flat tensors to flat tensors.

Such a module is all that an exporter needs to see.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from anyshape.declaration.calls import Signature
from anyshape.declaration.containers import container_of, is_cache, split_object
from anyshape.declaration.targets import Target

_NUMBERS = (torch.Tensor, int, float, torch.SymInt, torch.SymFloat, torch.SymBool)


def flatten_outputs(result: Any) -> list[tuple[str, Any]]:
    """The tensors and numbers of a result, with the names that they get in the file."""
    if hasattr(result, "_fields") or not isinstance(result, (list, tuple)):
        return list(_output_leaves("present" if is_cache(result) else "", result))
    named = (("present" if is_cache(part) else f"output.{index}", part) for index, part in enumerate(result))
    return [leaf for name, part in named for leaf in _output_leaves(name, part)]


def _output_leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, _NUMBERS):
        yield name or "output", value
        return
    split = container_of(value)
    if split is None:
        return
    for key, part in split(value)[0].items():
        leaves = _output_leaves(f"{name}.{key}" if name else _output_key(key), part)
        # a plain object's flags and counters are its own, such as a cache's `is_updated`; its tensors are results
        yield from (leaf for leaf in leaves if split is not split_object or isinstance(leaf[1], torch.Tensor))


def _output_key(key: str) -> str:
    """What comes back of `past_key_values` is `present`, as everywhere in the field."""
    return "present" if key == "past_key_values" else key


def as_tensor(value: Any) -> torch.Tensor:
    """A number among the outputs becomes a tensor without axes."""
    if isinstance(value, torch.Tensor):
        return value
    if isinstance(value, (bool, torch.SymBool)):
        return torch.scalar_tensor(value, dtype=torch.bool)  # type: ignore[arg-type]
    if isinstance(value, (int, torch.SymInt)):
        return torch.scalar_tensor(value, dtype=torch.int64)  # type: ignore[arg-type]
    return torch.scalar_tensor(value, dtype=torch.float32)


class Adapter(nn.Module):
    """The target as a module from flat inputs to flat tensors, in the order of `inputs`."""

    def __init__(self, target: Target, signature: Signature, inputs: tuple[str, ...]) -> None:
        super().__init__()
        self.model = target.module
        self._target = target
        self._signature = signature
        self._inputs = inputs
        self.training = target.module.training  # an exported program refuses `train()`

    def forward(self, *values: Any) -> tuple[torch.Tensor, ...]:
        args, kwargs = self._signature.build(dict(zip(self._inputs, values, strict=True)))
        return tuple(as_tensor(value) for _, value in flatten_outputs(self._target.call(*args, **kwargs)))
