"""`torch.as_tensor([(height, width), (8, 4)])`: a tensor of sizes stays one of sizes.

Recognised: `torch.as_tensor`, `torch.asarray` and `x.new_tensor` of a size, or of nested lists and tuples of numbers
with a size among them. Torch reads them as plain numbers, and the traced sizes become constants. Put there:
`torch.tensor`, which makes the same tensor and keeps sizes symbolic.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import SymFloat, SymInt, Tensor

from anyshape.conversion.operators.repair import Repair, Used
from anyshape.conversion.operators.repair_answering import Answer, answered


def _numbers_in(data: Any) -> Iterator[Any]:
    if isinstance(data, list | tuple):
        for part in data:
            yield from _numbers_in(part)
    else:
        yield data


def _is_of_sizes(data: Any) -> bool:
    """Whether a size is among the numbers; tensors are left to torch, which may share their memory."""
    found = [*_numbers_in(data)]
    plain = all(isinstance(one, int | float | SymInt | SymFloat) for one in found)
    return plain and any(isinstance(one, SymInt | SymFloat) for one in found)


def _made(used: Used, name: str) -> Answer:
    def answer(data: Any, dtype: Any = None, device: Any = None, **others: Any) -> Any:
        if others or not _is_of_sizes(data):
            return NotImplemented
        used(f"torch.{name}: of sizes")
        return torch.tensor(data, dtype=dtype, device=device)

    return answer


def _made_like(used: Used) -> Answer:
    def answer(like: Tensor, data: Any, *, dtype: Any = None, device: Any = None, **others: Any) -> Any:
        if others or not _is_of_sizes(data):
            return NotImplemented
        used("x.new_tensor: of sizes")
        return torch.tensor(data, dtype=dtype or like.dtype, device=device or like.device)

    return answer


@contextlib.contextmanager
def _apply(used: Used) -> Iterator[None]:
    functions = {(torch, name): _made(used, name) for name in ("as_tensor", "asarray")}
    with answered({**functions, (Tensor, "new_tensor"): _made_like(used)}):
        yield


TENSORS_OF_SIZES = Repair("tensors of sizes", _apply)
