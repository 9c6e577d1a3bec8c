"""`chunk`, `split` and `tensor_split` of an axis whose size varies: slices between borders computed from the size.

Recognised: chunks and sections of a symbolic axis, and a split into pieces whose length is a size. Torch counts the
pieces by the traced size, and its translation of the result does not load. Put there: one slice for each piece, with
the borders that torch's documentation gives; where eager makes fewer pieces of a small axis, the last ones are empty. A
split into pieces of a literal length is left: how many there are depends on the size.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import SymInt, Tensor

from anyshape.conversion.operators.repair import Repair, Used
from anyshape.conversion.operators.repair_answering import answered

Function = Callable[..., Any]


def _pieces(x: Tensor, axis: int, borders: Sequence[Any]) -> tuple[Tensor, ...]:
    before = (slice(None),) * (axis % x.ndim)
    return tuple(x[(*before, slice(start, end))] for start, end in itertools.pairwise(borders))


def _chunk(used: Used) -> Function:
    def answer(input: Tensor, chunks: int, dim: int = 0) -> Any:  # noqa: A002
        size = input.shape[dim]
        if not isinstance(size, SymInt) or isinstance(chunks, SymInt):
            return NotImplemented
        used("torch.chunk: pieces by the size at run time")
        length = (size + chunks - 1) // chunks
        return _pieces(input, dim, [*(index * length for index in range(chunks)), size])

    return answer


def _split(used: Used) -> Function:
    def answer(tensor: Tensor, split_size_or_sections: Any = None, dim: int = 0, **named: Any) -> Any:
        length = named.pop("split_size", split_size_or_sections)
        if named or not isinstance(length, SymInt):
            return NotImplemented
        used("torch.split: pieces by the size at run time")
        many = int((tensor.shape[dim] + length - 1) // length)
        return _pieces(tensor, dim, [index * length for index in range(many + 1)])

    return answer


def _tensor_split(used: Used) -> Function:
    def answer(input: Tensor, indices_or_sections: Any = None, dim: int = 0, **named: Any) -> Any:  # noqa: A002
        sections = named.pop("sections", indices_or_sections)
        size = input.shape[dim]
        if named or not isinstance(sections, int) or not isinstance(size, SymInt):
            return NotImplemented
        used("torch.tensor_split: pieces by the size at run time")
        borders: list[Any] = [0]
        for index in range(sections):  # the first ones are longer by one where it does not come out even
            borders.append(borders[-1] + (size + sections - 1 - index) // sections)
        return _pieces(input, dim, [*borders[:-1], size])

    return answer


@contextlib.contextmanager
def _apply(used: Used) -> Iterator[None]:
    kinds = {"chunk": _chunk(used), "split": _split(used), "tensor_split": _tensor_split(used)}
    places = {(owner, name): answer for owner in (torch, Tensor) for name, answer in kinds.items()}
    with answered(places):
        yield


CUTTING = Repair("pieces of an axis", _apply)
