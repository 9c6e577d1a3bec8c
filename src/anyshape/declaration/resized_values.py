"""Values for a tensor of another size that keep their meaning: slices copied or mixed, integers drawn.

A new slice of floats is a mix of two slices of the example, with weights that sum to one: range, sign, order inside a
slice and sums stay, and no two slices are equal. Copies, zeros and edges would each hide the very bug that puts them
there. Floats come and go as float64 or complex128, integers as int64; what they were before is the caller's affair.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from anyshape.sizes import budgets

# ---- slices, copied and mixed


def tile(tensor: Tensor, shape: Sequence[int]) -> Tensor:
    for axis, size in enumerate(shape):
        tensor = tensor.index_select(axis, torch.arange(size) % tensor.shape[axis])
    return tensor


def repeat_edge(tensor: Tensor, shape: Sequence[int]) -> Tensor:
    for axis, size in enumerate(shape):
        tensor = tensor.index_select(axis, torch.arange(size).clamp(max=tensor.shape[axis] - 1))
    return tensor


@dataclass(frozen=True)
class Recipe:
    """The first `kept` slices as they are, then new ones: `weight` of the slice `first`, the rest of `second`.

    Where all slices are equal there is nothing to mix (`bends`): each new one is bent by a curve of its own.
    """

    kept: int
    first: Tensor
    second: Tensor
    weight: Tensor
    power: Tensor
    bends: bool

    def apply(self, tensor: Tensor, axis: int) -> Tensor:
        shape = [-1 if a == axis else 1 for a in range(tensor.dim())]
        weight, power = self.weight.view(shape), self.power.view(shape)
        new = tensor.index_select(axis, self.first)
        if self.bends:
            new = bend(new, power, 1 - weight)
        else:
            new = new * weight + tensor.index_select(axis, self.second) * (1 - weight)
        return torch.cat([tensor.narrow(axis, 0, self.kept), new], axis)


def make_recipe(tensor: Tensor, axis: int, size: int, *, generator: torch.Generator, keep: bool) -> Recipe:
    """A recipe for `size` slices; `keep`: those of the example come first, as they are."""
    kept = min(size, tensor.shape[axis]) if keep else 0
    count = size - kept
    sources = different_slices(tensor, axis) if count else torch.zeros(1, dtype=torch.int64)
    pick = torch.randint(len(sources), (count,), generator=generator)
    skip = 1 + torch.randint(max(len(sources) - 1, 1), (count,), generator=generator)
    weight, power = torch.rand(2, count, generator=generator, dtype=torch.float64)
    return Recipe(
        kept=kept,
        first=sources[pick],
        second=sources[(pick + skip) % len(sources)],
        weight=0.2 + 0.6 * weight,
        power=0.5 + 1.5 * power,
        bends=len(sources) == 1,
    )


def different_slices(tensor: Tensor, axis: int) -> Tensor:
    """The first index of each different slice along the axis; a mix of two equal ones would be a third."""
    real = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    rows = real.movedim(axis, 0).reshape(tensor.shape[axis], -1)
    kinds, kind_of_row = rows.unique(dim=0, return_inverse=True)  # type: ignore[no-untyped-call]
    index = torch.arange(len(rows))
    return torch.full((len(kinds),), len(rows)).scatter_reduce(0, kind_of_row, index, "amin").sort().values


def bend(tensor: Tensor, power: Tensor | float, scale: Tensor | float) -> Tensor:
    """Other values by a rising curve through zero: order, signs, zeros and the largest magnitude (a bound) stay."""
    size = tensor.abs()
    is_finite = size.isfinite()
    largest = size[is_finite].max() if bool(is_finite.any()) else size.new_ones(())
    bent = tensor.sgn() * largest * scale * (size / largest.clamp(min=1e-300)) ** power
    return torch.where(is_finite, bent, tensor)


def draw_bend(tensor: Tensor, *, generator: torch.Generator) -> Tensor:
    """The whole tensor bent by one curve."""
    power, scale = torch.rand(2, generator=generator, dtype=torch.float64).tolist()
    return bend(tensor, 0.5 + 1.5 * power, 0.5 + 0.49 * scale)


def is_symmetric(tensor: Tensor) -> bool:
    return tensor.dim() > 1 and tensor.shape[-1] == tensor.shape[-2] and torch.allclose(tensor, tensor.mT)


def mix_symmetric(tensor: Tensor, size: int, *, generator: torch.Generator, keep: bool) -> Tensor:
    """A symmetric matrix resized on both axes by one recipe; a constant diagonal stays."""
    recipe = make_recipe(tensor, tensor.dim() - 1, size, generator=generator, keep=keep)
    mixed = recipe.apply(recipe.apply(tensor, tensor.dim() - 1), tensor.dim() - 2)
    diagonal = tensor.diagonal(dim1=-2, dim2=-1)
    if tensor.shape[-1] > 1 and bool((diagonal == diagonal.flatten()[0]).all()):
        mixed.diagonal(dim1=-2, dim2=-1).fill_(diagonal.flatten()[0])
    return mixed


# ---- integers: drawn inside the example's range, rising where the example rises


def draw_integers(
    shape: Sequence[int], lowest: int, highest: int, *, generator: torch.Generator, spread: bool = False
) -> Tensor:
    """Integers from `lowest` to `highest`; `spread`: along the last axis each comes once before any comes twice."""
    drawn = torch.randint(lowest, highest + 1, tuple(shape), generator=generator)
    if spread and drawn.dim():
        order = torch.rand(*shape[:-1], highest - lowest + 1, generator=generator).argsort(-1)
        once = order[..., : shape[-1]] + lowest
        drawn[..., : once.shape[-1]] = once
    return drawn


def grow_integers(tensor: Tensor, axis: int, size: int, *, generator: torch.Generator) -> Tensor:
    """The first slices as they are; each new element lies between the lowest and the highest of its line."""
    old = tensor.shape[axis]
    if size <= old:
        return tensor.narrow(axis, 0, size)
    count = size - old
    for _ in range(budgets.REDRAWS_OF_INTEGERS):
        grown = torch.cat([tensor, _new_slices(tensor, axis, count, generator)], axis)
        if are_all_different(grown, axis):
            break
    return grown


def are_all_different(tensor: Tensor, axis: int) -> bool:
    """Whether no slice of integers along the axis is there twice; mostly told by one number for each slice."""
    rows = tensor.movedim(axis, 0).reshape(tensor.shape[axis], -1)
    lowest = int(rows.min())
    kinds = int(rows.max()) - lowest + 1
    if rows.shape[1] * math.log2(kinds) > 62:
        return len(different_slices(tensor, axis)) == len(rows)
    if kinds ** rows.shape[1] < len(rows):
        return False
    places = torch.tensor([kinds**place for place in range(rows.shape[1])])
    ordered = ((rows - lowest) * places).sum(1).sort().values
    return bool((ordered.diff() > 0).all())


def _new_slices(tensor: Tensor, axis: int, count: int, generator: torch.Generator) -> Tensor:
    shape = (*tensor.shape[:axis], count, *tensor.shape[axis + 1 :])
    if tensor.shape[axis] == 1 and tensor.numel() > 1:
        return redraw_integers(tensor, shape, generator=generator)  # one slice says nothing about its lines
    if _has_markers(tensor):
        return tensor.gather(axis, torch.randint(tensor.shape[axis], shape, generator=generator))
    lowest, highest = tensor.amin(axis, keepdim=True), tensor.amax(axis, keepdim=True)
    return lowest + (torch.rand(shape, generator=generator, dtype=torch.float64) * (highest - lowest + 1)).long()


def redraw_integers(tensor: Tensor, shape: Sequence[int], *, generator: torch.Generator) -> Tensor:
    """Other integers of the example's range."""
    if _has_markers(tensor):
        return tensor.flatten()[torch.randint(tensor.numel(), tuple(shape), generator=generator)]
    return draw_integers(shape, int(tensor.min()), int(tensor.max()), generator=generator)


def _has_markers(tensor: Tensor) -> bool:
    # Below zero stand markers such as -100 for "no label": what lies between them and the rest is not valid.
    return bool((tensor < 0).any())


def keep_highest(result: Tensor, example: Tensor) -> Tensor:
    """Where every line of the example holds its highest value, an end-of-text token say, every line of the result."""
    if result.dim() == 0 or not bool((example == example.max()).any(-1).all()):
        return result
    lacking = ~(result == example.max()).any(-1)
    kept = result.clone()
    kept[..., -1] = torch.where(lacking, example.max(), kept[..., -1])
    return kept


def even_step(tensor: Tensor, axis: int) -> float | None:
    """The step of an arange along the axis, which each line may start elsewhere; 1 for a single element."""
    if tensor.shape[axis] == 1:
        return 1
    one_line = tensor[tuple(slice(None) if a == axis else slice(1) for a in range(tensor.dim()))]
    if not (_is_even(one_line, axis) and _is_even(tensor, axis)):  # most tensors are told by one line
        return None
    steps = tensor.diff(dim=axis)
    return steps.mean().item() if tensor.is_floating_point() else steps.flatten()[0].item()


def _is_even(tensor: Tensor, axis: int) -> bool:
    steps = tensor.diff(dim=axis)
    first = steps.flatten()[0]
    if tensor.is_floating_point():
        return bool(first != 0) and torch.allclose(steps, first.expand_as(steps), rtol=1e-3, atol=0)
    return bool(first > 0) and bool((steps == first).all())


def rises_strictly(tensor: Tensor, axis: int) -> bool:
    return tensor.shape[axis] > 2 and bool((tensor.diff(dim=axis) > 0).all())


def continue_steps(tensor: Tensor, axis: int, size: int, *, generator: torch.Generator, keep: bool) -> Tensor:
    """Strictly rising lines go on rising, by steps the example makes; `keep`: after its own."""
    lines = tensor.movedim(axis, -1)
    steps = lines.diff(dim=-1)
    drawn = steps.flatten()[torch.randint(steps.numel(), (*lines.shape[:-1], size), generator=generator)]
    if keep:
        kept = min(size - 1, steps.shape[-1])
        drawn[..., 1 : kept + 1] = steps[..., :kept]
    drawn[..., :1] = lines[..., :1]
    return drawn.cumsum(-1).movedim(-1, axis)


def draw_offsets(count: int, total: int, *, closed: bool, generator: torch.Generator) -> Tensor:
    """`count` rising offsets from 0 to at most `total`; `closed`: the last is `total`. No part is empty in vain."""
    inner = count - 1 - closed
    if inner <= max(total - 1, 0):
        cuts = torch.randperm(max(total - 1, 0), generator=generator)[: max(inner, 0)] + 1
    else:
        cuts = torch.randint(0, total + 1, (inner,), generator=generator)
    ends = [torch.tensor([0]), cuts.sort().values, torch.tensor([total] if closed else [], dtype=torch.int64)]
    return torch.cat(ends)[:count]


# ---- what holds of every line of the example holds of every line of the result


def restore_norm(result: Tensor, example: Tensor, *, tolerance: float) -> Tensor:
    """Lines that sum to one (order 1) or have length one (order 2) do so again."""
    for axis in reversed(range(example.dim())):
        for order in (1, 2):
            if _has_unit_norm(example, axis, order, tolerance):
                return _normalise(result, axis, order)
    return result


def _has_unit_norm(example: Tensor, axis: int, order: int, tolerance: float) -> bool:
    if example.shape[axis] < 2 or (order == 1 and example.is_complex()):
        return False
    if example.numel():
        first = example[tuple(slice(None) if one == axis else 0 for one in range(example.dim()))]
        if abs(float(torch.linalg.vector_norm(first, order)) - 1) > 2 * tolerance:
            return False  # one line tells, mostly, and this is asked for every call
    if order == 1 and bool((example < 0).any()):
        return False
    norm = torch.linalg.vector_norm(example, order, dim=axis)
    return torch.allclose(norm, torch.ones_like(norm), rtol=0, atol=tolerance)


def _normalise(result: Tensor, axis: int, order: int) -> Tensor:
    norm = torch.linalg.vector_norm(result, order, dim=axis, keepdim=True)
    filled = torch.where(norm == 0, torch.ones_like(result), result)  # a line cut before its only value
    return torch.nn.functional.normalize(filled, p=order, dim=axis)


def restore_order(result: Tensor, example: Tensor, axes: Sequence[int]) -> Tensor:
    """Sorted again along the axes along which the example is sorted, up or down."""
    for axis in axes:
        steps = example.diff(dim=axis)
        if steps.numel() < 2 or not bool((steps != 0).any()):
            continue
        if bool((steps >= 0).all()) or bool((steps <= 0).all()):
            result = result.sort(dim=axis, descending=bool((steps < 0).any())).values
    return result
