"""Integers that stay valid when a tensor is resized: drawn inside the example's range, rising where the example rises.

Tensors come and go as int64; what they were before is the caller's affair.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from anyshape.declaration.resized_leaf import Example, LeafResizing
from anyshape.declaration.resized_slices import different_slices, tile
from anyshape.sizes import budgets
from anyshape.sizes.notation import Expression


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
        if len(different_slices(grown, axis)) == size:
            break
    return grown


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


# ---- rules for integers that speak of sizes


def sizes_of_dims(resizing: LeafResizing) -> Tensor | None:
    """A few integers that are sizes of dims, such as `orig_size = [height, width]`, alone or the same in each row."""
    tensor = resizing.tensor
    is_index = resizing.range is not None and resizing.range.kind == "index"
    if not resizing.is_integer or is_index or (resizing.axes and resizing.axes[-1] is not None):
        return None
    lines = tensor.reshape(-1, tensor.shape[-1] if tensor.dim() else 1)
    if lines.shape[1] > 4 or not bool((lines == lines[0]).all()):
        return None
    followed: list[Expression] = []
    for value in lines[0].tolist():
        candidates = list(_expressions_of_size(resizing.example, value))
        if not candidates:
            return None
        followed.append(next((c for c in candidates if c not in followed), candidates[0]))
    line = torch.tensor([expression.value(resizing.sizes) for expression in followed])
    return line.reshape(tensor.shape[-1:]).expand(resizing.shape)


def _expressions_of_size(example: Example, value: int) -> Iterator[Expression]:
    """The expressions and dims that have this size in the example: those of an axis first, of them bare dims first."""
    if value < 2:
        return  # 0 and 1 are flags and counts far more often than sizes
    written = [e for axes in example.axes.values() for e in axes if e is not None] + list(example.scalars.values())
    dims = [Expression(dim) for dim in example.sizes]
    for expression in dict.fromkeys([*sorted(written, key=lambda e: not e.is_name), *dims]):
        if expression.value(example.sizes) == value:
            yield expression


def offsets_of_parts(resizing: LeafResizing) -> Tensor | None:
    """Where parts start, from 0; the last may be the total, a dim's size."""
    tensor, value_range = resizing.tensor, resizing.range
    if (
        not resizing.is_integer
        or tensor.dim() != 1
        or len(tensor) < 2
        or tensor[0] != 0
        or bool((tensor.diff() < 0).any())
    ):
        return None
    if value_range is not None and value_range.kind == "length":
        closed = int(tensor[-1]) == value_range.highest(resizing.example.sizes)
        return _new_offsets(resizing, value_range.highest(resizing.sizes), closed=closed)
    # without a known range, repeats are the mark of row numbers and steps of one that of positions
    total = next(_expressions_of_size(resizing.example, int(tensor[-1])), None)
    if total is None or value_range is not None or not rises_strictly(tensor, 0) or tensor[1] == 1:
        return None
    return _new_offsets(resizing, total.value(resizing.sizes), closed=True)


def _new_offsets(resizing: LeafResizing, total: int, *, closed: bool) -> Tensor:
    known = int(resizing.tensor[-1])
    if resizing.is_same_shape and not resizing.is_second and (known == total if closed else known <= total):
        return resizing.tensor
    return draw_offsets(resizing.shape[0], total, closed=closed, generator=resizing.generator)


def positions(resizing: LeafResizing) -> Tensor | None:
    """Positions that count on along an axis, from a start that may be the size of another dim (a cache)."""
    if resizing.tensor.dtype not in (torch.int64, torch.float64) or resizing.level == 2:
        return None  # on the last rung, because tokens such as 1, 2, 3 look like positions
    for axis in reversed(range(resizing.tensor.dim())):
        step = even_step(resizing.tensor, axis)
        start = _start_of_positions(resizing, axis)
        if step is None or not _shows_positions(resizing, axis, step, start):
            continue
        made = _positions_from(resizing, axis, step, start)
        if resizing.range is None or int(made.max()) <= resizing.range.highest(resizing.sizes):
            return made
    return None


def _start_of_positions(resizing: LeafResizing, axis: int) -> Expression | None:
    """What the first position follows: an expression that is on none of the leaf's own axes."""
    first = resizing.tensor.select(axis, 0)
    if not resizing.is_integer or not bool((first == first.flatten()[0]).all()):
        return None
    return next(
        (e for e in _expressions_of_size(resizing.example, int(first.flatten()[0])) if e not in resizing.axes), None
    )


def _shows_positions(resizing: LeafResizing, axis: int, step: float, start: Expression | None) -> bool:
    """Three elements show an arange; of one or two the start must tell: that of a cache, or 0 in every row."""
    size = resizing.tensor.shape[axis]
    if size > 2:
        return True
    if not resizing.is_integer or resizing.axes[axis] is None or resizing.range is not None or step != 1:
        return False
    return start is not None or (size == 2 and not bool(resizing.tensor.select(axis, 0).any()))


def _positions_from(resizing: LeafResizing, axis: int, step: float, start: Expression | None) -> Tensor:
    tensor, size = resizing.tensor, resizing.shape[axis]
    if resizing.is_same_shape and start is None:
        return tensor
    first = tensor.narrow(axis, 0, 1)
    lines = tile(first, [1 if a == axis else n for a, n in enumerate(resizing.shape)])
    if start is not None:
        lines = torch.full_like(lines, start.value(resizing.sizes))
    if not resizing.is_integer and _is_unit_interval(tensor):
        step = (tensor.max() - tensor.min()).item() / max(size - 1, 1)  # coordinates stay within their interval
    count = torch.arange(size, dtype=tensor.dtype).view([-1 if a == axis else 1 for a in range(tensor.dim())])
    return lines + count * step


def _is_unit_interval(tensor: Tensor) -> bool:
    return tensor.max().item() == 1 and tensor.min().item() in (0, -1)
