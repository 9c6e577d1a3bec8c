"""Masks that keep their pattern when they are resized: constant, causal, padded left or right, one-hot, scattered.

A mask holds two values at most: True and False, 1 and 0, or 0 and a very negative number. The first pattern that fits
an example makes the mask of the new shape.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from anyshape.declaration.resized_values import draw_integers

_VERY_NEGATIVE = -1e3


@dataclass(frozen=True)
class Mask:
    """A mask as True and False, and the values these stand for."""

    holds: Tensor
    low: float
    high: float

    def with_values(self, holds: Tensor, dtype: torch.dtype) -> Tensor:
        values = torch.tensor([self.low, self.high], dtype=dtype)
        return values[holds.long()]


def read_mask(tensor: Tensor) -> Mask | None:
    """The mask that a tensor is, or None."""
    if tensor.dim() == 0 or tensor.numel() == 0 or tensor.is_complex():
        return None
    if tensor.dtype == torch.bool:
        return Mask(tensor, low=False, high=True)
    lowest, highest = tensor.min().item(), tensor.max().item()
    if not bool(((tensor == lowest) | (tensor == highest)).all()):
        return None
    if {lowest, highest} <= {0, 1}:
        return Mask(tensor == 1, low=0, high=1)
    if tensor.is_floating_point() and highest == 0 and lowest <= _VERY_NEGATIVE:
        return Mask(tensor == 0, low=lowest, high=0)
    return None


@dataclass(frozen=True)
class _MaskResizing:
    mask: Tensor
    shape: tuple[int, ...]
    square: bool
    anew: bool
    generator: torch.Generator


def resize_mask(mask: Tensor, shape: Sequence[int], *, square: bool, anew: bool, generator: torch.Generator) -> Tensor:
    """A mask of this shape in the pattern of the example.

    `square`: its last two axes follow the same dim, so that diagonals mean something.
    `anew`: show what the example does not: where it is constant, lines become ragged.
    """
    return _mask_by_pattern(_MaskResizing(mask, tuple(shape), square, anew, generator))


def _mask_by_pattern(resizing: _MaskResizing) -> Tensor:
    return next(made for pattern in _PATTERNS if (made := pattern(resizing)) is not None)


# ---- constant


def _one_value_everywhere(resizing: _MaskResizing) -> Tensor | None:
    if not (bool(resizing.mask.all()) or not bool(resizing.mask.any())):
        return None
    value = bool(resizing.mask.flatten()[0])
    if not resizing.anew:
        return torch.full(resizing.shape, value)
    ragged = _ragged_lines(resizing)
    return ragged if value else ~ragged


def _ragged_lines(resizing: _MaskResizing) -> Tensor:
    """Lines that hold from their start to an end of their own, one of them to its very end."""
    # lines lie on the last axis of the example that has a size; never on the batch, whose rows would be empty
    sizes = resizing.mask.shape
    axis = next((a for a in reversed(range(1, len(sizes))) if sizes[a] > 1), len(sizes) - 1)
    # what a query may see of padded keys is the same for every query
    shared = [len(resizing.shape) - 2] if resizing.square and axis == len(resizing.shape) - 1 else []
    ends = _draw_ends(resizing.shape, axis, shared, lowest=1, generator=resizing.generator)
    if ends.numel() > 1:
        ends.view(-1)[0] = resizing.shape[axis]
    return _up_to(ends, axis, resizing.shape)


def _draw_ends(
    shape: Sequence[int], axis: int, shared: Sequence[int], *, lowest: int, generator: torch.Generator
) -> Tensor:
    """Where each line along the axis ends, before its full size if it can; equal along the shared axes."""
    lead = [1 if a == axis or a in shared else size for a, size in enumerate(shape)]
    lowest = min(lowest, shape[axis])
    ends = draw_integers([math.prod(lead)], lowest, max(shape[axis] - 1, lowest), generator=generator, spread=True)
    return ends.view(lead)


def _up_to(ends: Tensor, axis: int, shape: Sequence[int]) -> Tensor:
    position = torch.arange(shape[axis]).view([-1 if a == axis else 1 for a in range(len(shape))])
    return (position < ends).expand(tuple(shape)).clone()


# ---- diagonals: causal, banded, identity, each alone or with padded columns


def _diagonals(resizing: _MaskResizing) -> Tensor | None:
    mask = resizing.mask
    if not resizing.square or min(mask.shape[-2:]) < 2 or _is_constant_along(mask, mask.dim() - 2):
        return None
    hides = not bool(mask[..., -1, -1].any())  # True means hidden where the last position does not see itself
    for inverted in (hides, not hides):
        made = _visible_diagonals(replace(resizing, mask=mask ^ inverted))
        if made is not None:
            return made ^ inverted
    return None


def _visible_diagonals(resizing: _MaskResizing) -> Tensor | None:
    """For a mask whose diagonals are constant, or are so but for columns that are padding."""
    mask, shape = resizing.mask, resizing.shape
    profile = _diagonals_that_hold(mask)
    pattern = profile[_diagonal_numbers(mask.shape, mask.shape)]
    is_pure = bool((mask == pattern).all())
    if not is_pure and (mask.dim() < 3 or not bool((mask == pattern & mask.any(-2, keepdim=True)).all())):
        return None
    numbers = _diagonal_numbers(mask.shape, shape)
    columns = torch.ones_like(mask[..., 0, :]) if is_pure else mask.any(-2)
    seen = replace(resizing, mask=columns, shape=(*shape[:-2], shape[-1]), square=False)
    visible = _mask_by_pattern(seen).unsqueeze(-2)
    if is_pure:
        visible = visible | (numbers == mask.shape[-1] - 1)  # whatever is hidden, each position sees itself
    return profile[numbers] & visible


def _diagonals_that_hold(mask: Tensor) -> Tensor:
    """Which diagonals hold anywhere, from the lowest to the highest."""
    plane = mask.reshape(-1, *mask.shape[-2:]).any(0)
    profile = torch.zeros(sum(plane.shape) - 1, dtype=torch.bool)
    profile[_diagonal_numbers(plane.shape, plane.shape)[plane]] = True
    return profile


def _diagonal_numbers(example: Sequence[int], shape: Sequence[int]) -> Tensor:
    """The diagonal of the example that each element of the last two axes lies on, counted from the last corner.

    With more keys than queries (a cache), the last query still stands at the last key. Beyond the outermost diagonals
    of the example, these go on.
    """
    queries, keys = shape[-2], shape[-1]
    distance = torch.arange(keys) - torch.arange(queries).unsqueeze(-1) - (keys - queries)
    return (distance + example[-1] - 1).clamp(0, example[-1] + example[-2] - 2)


# ---- padding


def _padding(resizing: _MaskResizing) -> Tensor | None:
    """True from the start of each line to an end of its own (padded right), or the other way round (padded left)."""
    mask, shape = resizing.mask, resizing.shape
    for axis in reversed(range(mask.dim())):
        steps = mask.int().diff(dim=axis)
        if bool((steps > 0).any()) != bool((steps < 0).any()):
            lines = _draw_padding(resizing, axis)
            return _up_to(lines, axis, shape) if bool((steps < 0).any()) else _up_to(lines, axis, shape).flip(axis)
    return None


def _draw_padding(resizing: _MaskResizing, axis: int) -> Tensor:
    mask, shape = resizing.mask, resizing.shape
    shared = [a for a in range(mask.dim()) if mask.shape[a] > 1 and a != axis and _is_constant_along(mask, a)]
    if resizing.anew:
        shared = [a for a in shared if a != 0]  # rows of a batch should differ
    ends = _draw_ends(shape, axis, shared, lowest=int(mask.any(axis).all()), generator=resizing.generator)
    has_full_line = bool(mask.all(axis).any())
    if has_full_line and (ends.numel() > 1 or not resizing.anew):
        ends.view(-1)[0] = shape[axis]
    return ends


def _is_constant_along(mask: Tensor, axis: int) -> bool:
    return bool((mask == mask.narrow(axis, 0, 1)).all())


# ---- one True in each line; scattered


def _one_hot(resizing: _MaskResizing) -> Tensor | None:
    mask, shape = resizing.mask, resizing.shape
    for axis in reversed(range(mask.dim())):
        if mask.shape[axis] > 1 and bool((mask.sum(axis) == 1).all()):
            return _draw_one_in_each(shape, axis, resizing.generator)
    return None


def _draw_one_in_each(shape: Sequence[int], axis: int, generator: torch.Generator) -> Tensor:
    lines = [1 if a == axis else size for a, size in enumerate(shape)]
    chosen = torch.randint(shape[axis], lines, generator=generator)
    return torch.zeros(tuple(shape), dtype=torch.bool).scatter(axis, chosen, value=True)


def _scattered_entries(resizing: _MaskResizing) -> Tensor:
    """As dense as the example; symmetric if it is; some True and some False in each line where each has some."""
    mask, shape = resizing.mask, resizing.shape
    is_square = resizing.square and mask.shape[-1] == mask.shape[-2]
    is_symmetric = is_square and bool((mask == mask.mT).all())
    density = mask.double().mean().item()
    chance = 1 - (1 - density) ** 0.5 if is_symmetric else density  # either of two mirrored elements sets both
    made = torch.rand(shape, generator=resizing.generator) < chance
    for axis in range(mask.dim()):
        if mask.shape[axis] > 1 and bool(mask.any(axis).all()):
            made = _with_one_in_each(made, axis, resizing.generator)
    if not bool(mask.all(-1).any()) and shape[-1] > 1:
        made = ~_with_one_in_each(~made, len(shape) - 1, resizing.generator)
    made = made | made.mT if is_symmetric else made
    return _with_diagonal(made, mask) if is_square else made


def _with_one_in_each(made: Tensor, axis: int, generator: torch.Generator) -> Tensor:
    return made | (~made.any(axis, keepdim=True) & _draw_one_in_each(made.shape, axis, generator))


def _with_diagonal(made: Tensor, mask: Tensor) -> Tensor:
    """All nodes linked to themselves, or none, as in the example."""
    diagonal = mask.diagonal(dim1=-2, dim2=-1)
    if bool(diagonal.all()) or not bool(diagonal.any()):
        made.diagonal(dim1=-2, dim2=-1).fill_(bool(diagonal.flatten()[0]))
    return made


_PATTERNS: tuple[Callable[[_MaskResizing], Tensor | None], ...] = (
    _one_value_everywhere,
    _diagonals,
    _padding,
    _one_hot,
    _scattered_entries,
)
