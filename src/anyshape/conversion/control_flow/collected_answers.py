"""Functions of torch that take such a list, or that would make as many tensors as an axis is long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from anyshape.conversion.control_flow.collected_collected import (
    Collected,
    Steps,
    holds_steps,
    joined,
    parts_of,
    stacked,
)
from anyshape.conversion.control_flow.loop_trace import is_varying
from anyshape.torchkit.capture_expressions import is_same_number


def _stack(tensors: Any, dim: int = 0, **options: Any) -> Any:
    if not holds_steps(tensors) or options:
        return NotImplemented
    return stacked(parts_of(tensors)).movedim(0, dim)


def _cat(tensors: Any, dim: int = 0, **options: Any) -> Any:
    if not holds_steps(tensors) or options.keys() - {"axis"}:
        return NotImplemented
    return joined(parts_of(tensors), options.get("axis", dim))


def _along(axis: int, axis_of_vectors: int | None) -> Callable[..., Any]:
    """`hstack`, `vstack`, `column_stack`: vectors may be joined along another axis, or (None) each be a column."""

    def answer(tensors: Any) -> Any:
        if not holds_steps(tensors):
            return NotImplemented
        parts = parts_of(tensors)
        element = next(part.tensor[0] if isinstance(part, Steps) else part for part in parts)
        if element.ndim > 1:
            return joined(parts, axis)
        return stacked(parts).movedim(0, axis) if axis_of_vectors is None else joined(parts, axis_of_vectors)

    return answer


def _unbind(x: Any, dim: int = 0) -> Any:
    if not isinstance(x, Tensor) or not x.ndim or not is_varying(x.shape[dim]):
        return NotImplemented
    return Collected([Steps(x.movedim(dim, 0))])


def _split(x: Any, split_size_or_sections: Any = None, dim: int = 0, *, split_size: Any = None) -> Any:
    size = split_size if split_size_or_sections is None else split_size_or_sections
    if not isinstance(x, Tensor) or not isinstance(size, int) or not is_varying(x.shape[dim]):
        return NotImplemented
    if size != 1 and not is_same_number(x.shape[dim] % size, 0):
        return NotImplemented
    dim %= x.ndim
    shape = (*x.shape[:dim], x.shape[dim] // size, size, *x.shape[dim + 1 :])
    return Collected([Steps(x.reshape(shape).movedim(dim, 0))])


def _chunk(x: Any, chunks: Any, dim: int = 0) -> Any:
    if not isinstance(x, Tensor) or not is_varying(chunks) or not is_same_number(x.shape[dim], chunks):
        return NotImplemented
    return _split(x, 1, dim)


ANSWERS: dict[tuple[Any, str], Callable[..., Any]] = {
    (torch, "stack"): _stack,
    (torch, "cat"): _cat,
    (torch, "concat"): _cat,
    (torch, "concatenate"): _cat,
    (torch, "hstack"): _along(1, 0),
    (torch, "vstack"): _along(0, None),
    (torch, "row_stack"): _along(0, None),
    (torch, "column_stack"): _along(1, None),
    (torch, "unbind"): _unbind,
    (Tensor, "unbind"): _unbind,
    (torch, "split"): _split,
    (Tensor, "split"): _split,
    (torch, "chunk"): _chunk,
    (Tensor, "chunk"): _chunk,
}
