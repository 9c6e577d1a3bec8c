"""Copies of tensors that a forward may write to: large ones lie in a temporary file, and once for all who ask.

Weights of quantised layers and tables are buffers, too, and fill the memory by themselves. A file's pages can be
dropped when memory is short; hardly ever are they read again.
"""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path

import torch

LARGE = 64 * 2**20
"""Bytes of all tensors of a state from which they count as large."""
_IN_FILE_FROM = 2**20
_COPIES: weakref.WeakValueDictionary[tuple[int, int], torch.Tensor] = weakref.WeakValueDictionary()
"""By identity and version; whoever holds a copy holds its original."""


def kept_copies(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """What the tensors hold now, to be read only."""
    if sum(map(_bytes, tensors)) < LARGE:
        return [tensor.detach().clone() for tensor in tensors]
    return [tensor.detach().clone() if _bytes(tensor) < _IN_FILE_FROM else _shared(tensor) for tensor in tensors]


def _bytes(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _shared(tensor: torch.Tensor) -> torch.Tensor:
    key = (id(tensor), tensor._version)
    copy = _COPIES.get(key)
    if copy is None:
        copy = _COPIES[key] = _in_file(tensor)
    return copy


def _in_file(tensor: torch.Tensor) -> torch.Tensor:
    """A copy in a file without a name, gone with the last who maps it; in memory where there is no room."""
    plain = tensor.detach()
    if plain.device.type != "cpu" or not plain.is_contiguous():
        return plain.clone()
    try:
        with tempfile.TemporaryDirectory(prefix="anyshape-") as folder:
            path = Path(folder) / "tensor"
            data = plain.reshape(-1).view(torch.uint8)
            data.numpy().tofile(path)
            mapped = torch.from_file(str(path), shared=True, size=data.numel(), dtype=torch.uint8)
    except (OSError, RuntimeError):  # a full disk, or a system that cannot map or remove such files
        return plain.clone()
    return mapped.view(plain.dtype).view(plain.shape)
