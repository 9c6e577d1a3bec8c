"""Weights beside a model, streamed to their file once: what shares memory shares its place in the file, too.

Nothing is read into memory on the way. A model that is written again with the same weights, as it is when its contract
is known, keeps the data that is there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx_ir as ir

_FROM_BYTES = 1024
"""Smaller ones stay in the model, where tools that simplify shapes look for them."""


@dataclass(frozen=True)
class _Memory:
    """Where a tensor lies in memory: a device and a run of bytes."""

    device: str
    start: int
    end: int

    def holds(self, other: _Memory) -> bool:
        return self.device == other.device and self.start <= other.start and other.end <= self.end


@dataclass
class ExternalWeights:
    """The weights in one data file."""

    path: Path
    _stored: list[Any] = field(default_factory=list)
    """As they are in memory, kept alive: an identity must not be given twice."""
    _places: dict[int, ir.ExternalTensor] = field(default_factory=dict)

    def save(self, model: ir.Model, path: Path) -> None:
        """Write the model, and its weights where they are others than those in the file."""
        values = [value for graph in model.graphs() for value in graph.initializers.values() if is_large(value)]
        tensors = [value.const_value for value in values]
        if not self._holds(tensors):
            self._write(tensors)
        with put_back(values):
            for value in values:
                value.const_value = self._places[id(value.const_value)]
            ir.save(model, path)

    def _holds(self, tensors: list[Any]) -> bool:
        same = len(tensors) == len(self._stored) and all(a is b for a, b in zip(tensors, self._stored, strict=True))
        return same and self.path.exists()

    def _write(self, tensors: list[Any]) -> None:
        """Those that lie inside of another one's memory are not written, but pointed to."""
        whole, inside = _parted({id(tensor): tensor for tensor in tensors})
        self.path.unlink(missing_ok=True)  # two of them need not find room
        placed = ir.external_data.convert_tensors_to_external(list(whole.values()), self.path.parent, self.path.name)
        self._places = dict(zip(whole, placed, strict=True))
        for key, (tensor, other, shift) in inside.items():
            self._places[key] = _shifted(self._places[id(other)], tensor, shift)
        self._stored = tensors


def is_large(value: ir.Value) -> bool:
    return value.const_value is not None and value.const_value.nbytes > _FROM_BYTES


def _parted(tensors: dict[int, Any]) -> tuple[dict[int, Any], dict[int, tuple[Any, Any, int]]]:
    """Tensors with memory of their own; and those in another's memory, with it and the place inside."""
    inside: dict[int, tuple[Any, Any, int]] = {}
    last: tuple[Any, _Memory] | None = None
    known = [(tensor, memory) for tensor in tensors.values() if (memory := _memory_of(tensor)) is not None]
    for tensor, memory in sorted(known, key=lambda row: (row[1].device, row[1].start, -row[1].end)):
        if last is not None and last[1].holds(memory):
            inside[id(tensor)] = (tensor, last[0], memory.start - last[1].start)
        else:
            last = (tensor, memory)
    return {key: tensor for key, tensor in tensors.items() if key not in inside}, inside


def _memory_of(tensor: Any) -> _Memory | None:
    """Where a tensor of torch lies, if in one piece; None for all others."""
    raw: Any = getattr(tensor, "raw", None)
    if not hasattr(raw, "data_ptr") or not raw.is_contiguous() or raw.nbytes != tensor.nbytes:
        return None
    return _Memory(str(raw.device), raw.data_ptr(), raw.data_ptr() + raw.nbytes)


def _shifted(place: ir.ExternalTensor, tensor: Any, shift: int) -> ir.ExternalTensor:
    return ir.ExternalTensor(
        place.location, (place.offset or 0) + shift, tensor.nbytes, tensor.dtype, shape=tensor.shape, name=tensor.name,
        base_dir=place.base_dir,
    )  # fmt: skip


@contextlib.contextmanager
def put_back(values: list[ir.Value]) -> Iterator[None]:
    """Afterwards the model holds its weights in memory again: the file may move."""
    kept = [value.const_value for value in values]
    try:
        yield
    finally:
        for value, tensor in zip(values, kept, strict=True):
            value.const_value = tensor
