"""`x.as_strided(sizes, strides)` by sizes that vary: the elements gathered from where the strides say they lie.

Recognised: a call in the model's own code with a symbolic size or stride; the usual case is windows that overlap. ONNX
knows no strides, and torch's translation takes `x` to lie in the order of its axes, which a transposed one does not.
Put there: the axes of `x` in the order in which they lie, made flat, and an index into that, the sum of position times
stride. Writing to the result does not write to `x`; the check would see it.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import SymInt, Tensor

from anyshape.conversion.operators.recurrent import is_known
from anyshape.conversion.operators.repair import Repair, Used
from anyshape.source.stacks import is_users
from anyshape.torchkit.patches import patched


@contextlib.contextmanager
def _apply(used: Used) -> Iterator[None]:
    genuine = Tensor.as_strided

    def as_strided(x: Tensor, size: Any, stride: Any, storage_offset: Any = None) -> Tensor:
        varies = any(isinstance(number, SymInt) for number in (*size, *stride))
        frame = inspect.currentframe()
        caller = None if frame is None else frame.f_back
        # torch computes other operators by this one, and means it
        theirs = caller is not None and is_users(caller.f_code.co_filename)
        order = _order_of_axes(x) if theirs and varies and storage_offset is None else None
        if order is None:
            return genuine(x, size, stride, storage_offset)
        used("as_strided: elements gathered by the size at run time")
        return x.permute(order).reshape(-1)[_index(size, stride, x.device)]

    with patched(Tensor, "as_strided", as_strided):
        yield


def _order_of_axes(x: Tensor) -> list[int] | None:
    """The axes from the one with the largest stride to the one whose elements lie side by side; None with gaps."""
    left, step = list(range(x.ndim)), 1
    order: list[int] = []
    while left:
        fitting = [axis for axis in left if is_known(x.stride(axis) == step)]
        if not fitting:
            return None
        axis = fitting[-1]
        left.remove(axis)
        order.insert(0, axis)
        step = step * x.shape[axis]
    return order


def _index(size: Sequence[Any], stride: Sequence[Any], device: torch.device) -> Tensor:
    index = torch.zeros((), dtype=torch.int64, device=device)
    for length, step in zip(size, stride, strict=True):
        index = index.unsqueeze(-1) + torch.arange(length, device=device) * step
    return index


STRIDES = Repair("as_strided", _apply)
