"""Parts and arrangements of a tensor by sizes that vary: pieces of an axis, strides, rolls, axes that may be dropped.

A split into pieces of a literal length is left to torch: how many there are depends on the size.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import onnx_ir as ir
import torch
from torch import Tensor

from anyshape.conversion.operators.onnx_words import (
    BOOL,
    as_vector,
    from_front,
    op,
    rank,
    size_of,
    static_size,
    vector,
    whole,
)
from anyshape.conversion.operators.repair import Answer, Repair, Used, answering, arange, holds_size, is_known, is_size
from anyshape.source.spans import is_users
from anyshape.torchkit.patches import patched

# ---- pieces of an axis: chunks and sections of a symbolic one, and a split into pieces whose length is a size

# Torch counts the pieces by the traced size, and its translation of the result does not load. Put there: one slice for
# each piece, with the borders that torch's documentation gives; where eager makes fewer pieces of a small axis, the
# last ones are empty.


def _pieces(x: Tensor, axis: int, borders: Sequence[Any]) -> tuple[Tensor, ...]:
    before = (slice(None),) * (axis % x.ndim)
    return tuple(x[(*before, slice(start, end))] for start, end in itertools.pairwise(borders))


def _chunk(used: Used, input: Tensor, chunks: int, dim: int = 0) -> Any:  # noqa: A002
    size = input.shape[dim]
    if not is_size(size) or is_size(chunks):
        return NotImplemented
    used("torch.chunk: pieces by the size at run time")
    length = (size + chunks - 1) // chunks
    return _pieces(input, dim, [*(index * length for index in range(chunks)), size])


def _split(used: Used, tensor: Tensor, split_size_or_sections: Any = None, dim: int = 0, **named: Any) -> Any:
    length = named.pop("split_size", split_size_or_sections)
    if named or not is_size(length):
        return NotImplemented
    used("torch.split: pieces by the size at run time")
    many = int((tensor.shape[dim] + length - 1) // length)
    return _pieces(tensor, dim, [index * length for index in range(many + 1)])


def _tensor_split(used: Used, input: Tensor, indices_or_sections: Any = None, dim: int = 0, **named: Any) -> Any:  # noqa: A002
    sections = named.pop("sections", indices_or_sections)
    size = input.shape[dim]
    if named or not isinstance(sections, int) or not is_size(size):
        return NotImplemented
    used("torch.tensor_split: pieces by the size at run time")
    borders: list[Any] = [0]
    for index in range(sections):  # the first ones are longer by one where it does not come out even
        borders.append(borders[-1] + (size + sections - 1 - index) // sections)
    return _pieces(input, dim, [*borders[:-1], size])


_KINDS: dict[str, Answer] = {"chunk": _chunk, "split": _split, "tensor_split": _tensor_split}
_ANSWERS = {(owner, name): answer for owner in (torch, Tensor) for name, answer in _KINDS.items()}
CUTTING = Repair("pieces of an axis", answering(_ANSWERS))


# ---- `torch.repeat_interleave(x, repeats, dim)`: as many numbers as the axis is long, or one for all of it

# Torch decides at the traced sizes which of the two it is. Put there: the numbers taken in turn, which is either.


def _repeat_interleave(used: Used, input: Tensor, repeats: Any = None, dim: int | None = None, **_size: Any) -> Any:  # noqa: A002
    if not isinstance(repeats, Tensor) or repeats.ndim != 1 or not is_size(repeats.shape[0]):
        return NotImplemented
    x, axis = (input.reshape(-1), 0) if dim is None else (input, dim)
    if is_known(x.shape[axis] == repeats.shape[0]):
        return NotImplemented
    used("torch.repeat_interleave: one number for all or for each, by the size at run time")
    in_turn = arange(x.shape[axis], device=repeats.device) % repeats.shape[0]
    return x.index_select(axis, torch.repeat_interleave(repeats[in_turn]))


REPEATS = Repair(
    "numbers of repeats", answering({(owner, "repeat_interleave"): _repeat_interleave for owner in (torch, Tensor)})
)


# ---- `x.as_strided(sizes, strides)`: the elements gathered from where the strides say they lie

# ONNX knows no strides, and torch's translation takes `x` to lie in the order of its axes, which a transposed one does
# not. Put there: the axes of `x` in the order in which they lie, made flat, and an index into that, the sum of position
# times stride. The usual case is windows that overlap. Writing to the result does not write to `x`; the check would see
# it.


def _gathered_by_strides(used: Used) -> AbstractContextManager[None]:
    genuine = Tensor.as_strided

    def as_strided(x: Tensor, size: Any, stride: Any, storage_offset: Any = None) -> Tensor:
        varies = holds_size(size, stride)
        # torch computes other operators by this one, and means it. The frame gets no name here: one that holds itself
        # holds the tensors of all callers, and of a tensor that is held `torch.eye` gives an untraced copy
        theirs = is_users(sys._getframe(1).f_code.co_filename)
        order = _order_of_axes(x) if theirs and varies and storage_offset is None else None
        if order is None:
            return genuine(x, size, stride, storage_offset)
        used("as_strided: elements gathered by the size at run time")
        return x.permute(order).reshape(-1)[_places_in_memory(size, stride, x.device)]

    return patched(Tensor, "as_strided", as_strided)


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


def _places_in_memory(size: Sequence[Any], stride: Sequence[Any], device: torch.device) -> Tensor:
    index = torch.zeros((), dtype=torch.int64, device=device)
    for length, step in zip(size, stride, strict=True):
        index = index.unsqueeze(-1) + torch.arange(length, device=device) * step
    return index


STRIDES = Repair("as_strided", _gathered_by_strides)


# ---- ONNX


def _roll(x: ir.Value, shifts: Any, dims: Sequence[int] = ()) -> Any:
    """What leaves at the end comes back at the front; without axes, over all values in a row."""
    moves = list(shifts) if isinstance(shifts, list | tuple) else [shifts]
    if not dims:
        flat = op.Reshape(x, whole(-1))
        return op.Reshape(_rolled_along(flat, moves[0], 0), op.Shape(x))
    result = op.Identity(x)
    for shift, dim in zip(moves, dims, strict=True):
        axis = from_front(dim, x)
        result = _rolled_along(result, shift, axis, static_size(x, axis))
    return result


def _rolled_along(x: Any, shift: int | ir.Value, axis: int, size: int | None = None) -> Any:
    if size and not isinstance(shift, ir.Value):
        cut = whole(-shift % size)
    else:
        length = op.Max(size_of(x, axis), whole(1))
        # ONNX's Mod of integers has the sign of the divisor
        cut = op.Mod(op.Neg(as_vector(shift)), length)
    back = op.Slice(x, cut, whole(2**62), whole(axis))
    return op.Concat(back, op.Slice(x, whole(0), cut, whole(axis)), axis=axis)


def _squeeze(x: ir.Value, dim: Any) -> Any:
    """An axis goes if its size is 1 at run time, as in eager; the rank of what follows depends on it."""
    if rank(x) == 0:
        return op.Identity(x)
    axes = sorted({from_front(axis, x) for axis in (dim if isinstance(dim, list | tuple) else [dim])})
    sizes = {axis: static_size(x, axis) for axis in axes}
    certain = [axis for axis in axes if sizes[axis] == 1]
    uncertain = [axis for axis in axes if sizes[axis] is None]
    if not uncertain:
        return op.Squeeze(x, whole(*certain)) if certain else op.Identity(x)
    shape = op.Shape(x)
    fixed = _are_not_among(uncertain, x)
    stays = op.Or(fixed, op.Not(op.Equal(shape, whole(1))))
    if certain:
        stays = op.And(stays, _are_not_among(certain, x))
    return op.Reshape(x, op.Compress(shape, stays, axis=0), allowzero=1)


def _are_not_among(chosen: Sequence[int], x: ir.Value) -> Any:
    """A truth for each axis."""
    return op.Constant(value=ir.tensor([axis not in chosen for axis in range(rank(x))], dtype=BOOL))


def _first_values(x: ir.Value, size: Sequence[Any], **_layout: Any) -> Any:
    """As many as the new sizes take, in their shape; of more PyTorch says nothing but what memory holds."""
    sizes = vector(size)
    many = op.Reshape(op.ReduceProd(sizes, keepdims=1), whole(1))
    return op.Reshape(op.Slice(op.Reshape(x, whole(-1)), whole(0), many, whole(0)), sizes, allowzero=1)


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "aten::roll": _roll,
    "aten::resize": _first_values,
    "aten::set.source_Tensor": lambda _x, source: op.Identity(source),  # who takes another's memory is that other
    "aten::squeeze.dim": _squeeze,
    "aten::squeeze.dims": _squeeze,
}
