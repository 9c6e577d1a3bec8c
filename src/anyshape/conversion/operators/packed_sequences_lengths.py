"""Lengths that reach `pack_padded_sequence` as a list or an array of numpy.

Recognised: `lengths.tolist()` and `lengths.numpy()` of whole numbers on one axis. Torch reads them one by one, which
pins the batch. What is put there still is the tensor: packing takes it as it is, since the same numbers are in it.
Whoever does anything else with it reads the numbers, as before.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from anyshape.conversion.operators import recurrent
from anyshape.conversion.operators.repair import Repair, Used

_WHOLE = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


class Unread(Sequence[Any]):
    """The numbers of a tensor that nobody has read yet.

    It is no list on purpose: what looks into lists without asking them would find nothing.
    """

    def __init__(self, tensor: Tensor, read: Callable[[], Any], used: Used) -> None:
        self._tensor, self._read, self._used = tensor, read, used

    @property
    def tensor(self) -> Tensor:
        self._used("pack_padded_sequence: lengths stay a tensor")
        return self._tensor

    def __len__(self) -> int:
        return len(self._read())

    def __getitem__(self, index: Any) -> Any:
        return self._read()[index]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._read(), name)


def _answer(used: Used, tensor: Tensor, read: Callable[[], Any]) -> Any:
    is_lengths = tensor.dim() == 1 and tensor.dtype in _WHOLE and not isinstance(tensor.shape[0], int)
    return Unread(tensor, read, used) if is_lengths else read()


@contextlib.contextmanager
def _apply(used: Used) -> Iterator[None]:
    with recurrent.reading_answered(partial(_answer, used)):
        yield


LISTED_LENGTHS = Repair("listed lengths", _apply)
