"""The rules by which one tensor of the example call is resized: the first of a table that fits makes it.

Each rule knows one meaning a tensor can have (sizes, positions, offsets, a mask, ...) and gives the tensor at the new
sizes with that meaning kept, or None where the example does not show it.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from anyshape.declaration import resized_integers, resized_slices
from anyshape.declaration.resized_leaf import LeafResizing
from anyshape.declaration.resized_masks import read_mask, resize_mask


def resized_tensor(resizing: LeafResizing) -> Tensor:
    """The leaf at its new sizes, by the first rule that fits it."""
    return next(made for rule in RULES if (made := rule(resizing)) is not None)


def _without_elements(resizing: LeafResizing) -> Tensor | None:
    """No elements, in the example (an empty cache) or in the result."""
    tensor, shape = resizing.tensor, resizing.shape
    if resizing.is_same_shape and not tensor.numel():
        return tensor
    if tensor.numel() and 0 not in shape:
        return None
    if resizing.level or 0 in shape:
        return torch.zeros(shape, dtype=tensor.dtype)
    if resizing.is_float:
        return torch.randn(shape, generator=resizing.generator, dtype=tensor.dtype)
    highest = 1 if resizing.range is None else resizing.range.highest(resizing.sizes)
    return torch.randint(highest + 1, shape, generator=resizing.generator).to(tensor.dtype)


def _bounded_integers(resizing: LeafResizing) -> Tensor | None:
    """Integers below a dim's size: the room that a larger dim gives is used, that which a smaller one takes is not."""
    if resizing.range is None:
        return None
    tensor, sizes, known_sizes = resizing.tensor, resizing.sizes, resizing.example.sizes
    highest = resizing.range.highest(sizes)
    if resizing.level:
        return resized_slices.restore_order(
            _folded_below(_repeated_slices(resizing), highest), tensor, resizing.dynamic
        )
    made = _draw_bounded(resizing, resizing.range.kind, highest)
    if not resizing.is_second and all(sizes[dim] == known_sizes[dim] for dim in resizing.range.dims):
        common = tuple(slice(min(a, b)) for a, b in zip(made.shape, tensor.shape, strict=True))
        made[common] = tensor[common]
    elif int(tensor.max()) == resizing.range.highest(known_sizes) and int(made.max()) < highest:
        made.view(-1)[0] = highest  # one length is the full one, the last graph is named
    return resized_slices.restore_order(made, tensor, resizing.dynamic)


def _draw_bounded(resizing: LeafResizing, kind: str, highest: int) -> Tensor:
    tensor, shape = resizing.tensor, resizing.shape
    lowest = int(tensor.min())
    if kind == "index":
        lowest = min(lowest, 0)
    elif resizing.is_second:
        lowest = min(lowest, 1)
    lowest = min(lowest, highest)
    if not shape:
        return resized_integers.draw_integers(shape, lowest, highest, generator=resizing.generator)
    axis = resizing.dynamic[-1] if resizing.dynamic else len(shape) - 1
    lines = (*shape[:axis], *shape[axis + 1 :], shape[axis])
    spread = _is_spread(tensor.movedim(axis, -1), lowest)
    drawn = resized_integers.draw_integers(lines, lowest, highest, generator=resizing.generator, spread=spread)
    return drawn.movedim(-1, axis).contiguous()


def _is_spread(lines: Tensor, lowest: int) -> bool:
    """Whether in each line every value comes once (a permutation), or every value up to the highest comes (graphs)."""
    different = [len(line.unique()) for line in lines.reshape(-1, lines.shape[-1])]
    every = int(lines.max()) - lowest + 1
    return all(n == lines.shape[-1] for n in different) or all(n == every for n in different)


def _folded_below(tensor: Tensor, highest: int) -> Tensor:
    lowest = min(int(tensor.min()), highest)
    return torch.where(tensor > highest, lowest + (tensor - lowest) % (highest - lowest + 1), tensor)


def _repeated_edge(resizing: LeafResizing) -> Tensor | None:
    """The last rung: the last slice again, and integers below every dim that shrank."""
    if resizing.level < 2:
        return None
    made = _repeated_slices(resizing)
    if not resizing.is_integer:
        return made
    known_sizes, highest = resizing.example.sizes, int(resizing.tensor.max())
    shrunk = [size for dim, size in resizing.sizes.items() if size < known_sizes[dim] and known_sizes[dim] >= highest]
    return made.clamp(max=max(min(shrunk) - 1, 0)) if shrunk else made


def _same_tensor(resizing: LeafResizing) -> Tensor | None:
    is_free = resizing.is_second and (resizing.level == 0 or resizing.is_float)
    return resizing.tensor if resizing.is_same_shape and not is_free else None


def _same_pattern(resizing: LeafResizing) -> Tensor | None:
    mask = read_mask(resizing.tensor)
    if mask is None:
        return None
    anew = resizing.is_second and resizing.level == 0
    holds = resize_mask(mask.holds, resizing.shape, square=resizing.is_square, anew=anew, generator=resizing.generator)
    return mask.with_values(holds, resizing.tensor.dtype)


def _one_value(resizing: LeafResizing) -> Tensor | None:
    """One value everywhere, such as a state of zeros; a single element shows no constant."""
    tensor = resizing.tensor
    if tensor.numel() < 2 or not bool((tensor == tensor.flatten()[0]).all()):
        return None
    made = tensor.flatten()[0].expand(resizing.shape)
    if not (resizing.is_second and resizing.is_float):
        return made
    return made * (0.5 + 0.5 * torch.rand(resizing.shape, generator=resizing.generator, dtype=torch.float64))


def _tiled_slices(resizing: LeafResizing) -> Tensor | None:
    return _repeated_slices(resizing) if resizing.level else None


def _lone_flag(resizing: LeafResizing) -> Tensor | None:
    """A lone True or False chooses a path, which is not ours to change."""
    return resizing.tensor if resizing.tensor.dtype == torch.bool else None


def _rising_integers(resizing: LeafResizing) -> Tensor | None:
    """Integers that rise strictly along an axis, such as time stamps, rise on."""
    if not resizing.is_integer:
        return None
    axis = next((a for a in resizing.moving if resized_integers.rises_strictly(resizing.tensor, a)), None)
    if axis is None:
        return None
    others = [n if a != axis else resizing.tensor.shape[axis] for a, n in enumerate(resizing.shape)]
    lines = resized_slices.tile(resizing.tensor, others)
    size, keep = resizing.shape[axis], not resizing.is_second
    return resized_integers.continue_steps(lines, axis, size, generator=resizing.generator, keep=keep)


def _other_integers(resizing: LeafResizing) -> Tensor | None:
    if not resizing.is_integer:
        return None
    tensor = resizing.tensor
    if resizing.is_second:
        made = resized_integers.redraw_integers(tensor, resizing.shape, generator=resizing.generator)
    else:
        made = tensor
        for axis in resizing.moving:
            made = resized_integers.grow_integers(made, axis, resizing.shape[axis], generator=resizing.generator)
    return resized_slices.restore_order(resized_integers.keep_highest(made, tensor), tensor, resizing.moving)


def _symmetric_matrix(resizing: LeafResizing) -> Tensor | None:
    last = resizing.tensor.dim() - 1
    is_one_dim = resizing.is_square and resizing.axes[-1] == resizing.axes[-2] and last in resizing.moving
    if not is_one_dim or not resized_slices.is_symmetric(resizing.tensor):
        return None
    made = resizing.tensor
    for axis in resizing.moving:
        if axis < last - 1:
            made = _mixed_along(resizing, made, axis)
    return resized_slices.mix_symmetric(
        made, resizing.shape[-1], generator=resizing.generator, keep=not resizing.is_second
    )


def _mixed_floats(resizing: LeafResizing) -> Tensor:
    made = resizing.tensor
    for axis in resizing.moving:
        made = _mixed_along(resizing, made, axis)
    if resizing.is_second and not resizing.moving:
        made = resized_slices.draw_bend(made, generator=resizing.generator)
    return _with_invariants(resizing, made)


def _mixed_along(resizing: LeafResizing, made: Tensor, axis: int) -> Tensor:
    keep, size = not resizing.is_second, resizing.shape[axis]
    return resized_slices.make_recipe(made, axis, size, generator=resizing.generator, keep=keep).apply(made, axis)


def _with_invariants(resizing: LeafResizing, made: Tensor) -> Tensor:
    """What holds of every line of the example holds of every line of the result."""
    if resizing.is_float:
        made = resized_slices.restore_norm(made, resizing.tensor, tolerance=resizing.tolerance)
    is_ordered = resizing.is_integer or made.is_floating_point()
    return resized_slices.restore_order(made, resizing.tensor, resizing.dynamic) if is_ordered else made


RULES: tuple[Callable[[LeafResizing], Tensor | None], ...] = (
    _without_elements,
    resized_integers.sizes_of_dims,
    resized_integers.offsets_of_parts,
    resized_integers.positions,
    _bounded_integers,
    _repeated_edge,
    _same_tensor,
    _same_pattern,
    _one_value,
    _tiled_slices,
    _lone_flag,
    _rising_integers,
    _other_integers,
    _symmetric_matrix,
    _mixed_floats,
)


# ---- the lower rungs of the ladder


def _repeated_slices(resizing: LeafResizing) -> Tensor:
    """The slices of the example again, in turn (level 1) or the last one (level 2); a second content bends floats."""
    copy = resized_slices.tile if resizing.level == 1 else resized_slices.repeat_edge
    made = copy(resizing.tensor, resizing.shape)
    if resizing.is_second and resizing.is_float and read_mask(resizing.tensor) is None:
        made = resized_slices.draw_bend(made, generator=resizing.generator)
    return _with_invariants(resizing, made)
