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


def first_fit(request: LeafResizing) -> Tensor:
    """The leaf at its new sizes, by the first rule that fits it."""
    return next(made for rule in RULES if (made := rule(request)) is not None)


def _nothing(request: LeafResizing) -> Tensor | None:
    """No elements, in the example (an empty cache) or in the result."""
    tensor, shape = request.tensor, request.shape
    if request.is_same_shape and not tensor.numel():
        return tensor
    if tensor.numel() and 0 not in shape:
        return None
    if request.level or 0 in shape:
        return torch.zeros(shape, dtype=tensor.dtype)
    if request.is_float:
        return torch.randn(shape, generator=request.generator, dtype=tensor.dtype)
    highest = 1 if request.range is None else request.range.highest(request.sizes)
    return torch.randint(highest + 1, shape, generator=request.generator).to(tensor.dtype)


def _bounded(request: LeafResizing) -> Tensor | None:
    """Integers below a dim's size: the room that a larger dim gives is used, that which a smaller one takes is not."""
    if request.range is None:
        return None
    tensor, sizes, known_sizes = request.tensor, request.sizes, request.example.sizes
    highest = request.range.highest(sizes)
    if request.level:
        return resized_slices.restore_order(_fold(_plain(request), highest), tensor, request.dynamic)
    made = _draw_bounded(request, request.range.kind, highest)
    if not request.is_second and all(sizes[dim] == known_sizes[dim] for dim in request.range.dims):
        common = tuple(slice(min(a, b)) for a, b in zip(made.shape, tensor.shape, strict=True))
        made[common] = tensor[common]
    elif int(tensor.max()) == request.range.highest(known_sizes) and int(made.max()) < highest:
        made.view(-1)[0] = highest  # one length is the full one, the last graph is named
    return resized_slices.restore_order(made, tensor, request.dynamic)


def _draw_bounded(request: LeafResizing, kind: str, highest: int) -> Tensor:
    tensor, shape = request.tensor, request.shape
    lowest = int(tensor.min())
    if kind == "index":
        lowest = min(lowest, 0)
    elif request.is_second:
        lowest = min(lowest, 1)
    lowest = min(lowest, highest)
    if not shape:
        return resized_integers.draw_integers(shape, lowest, highest, generator=request.generator)
    axis = request.dynamic[-1] if request.dynamic else len(shape) - 1
    lines = (*shape[:axis], *shape[axis + 1 :], shape[axis])
    spread = _is_spread(tensor.movedim(axis, -1), lowest)
    drawn = resized_integers.draw_integers(lines, lowest, highest, generator=request.generator, spread=spread)
    return drawn.movedim(-1, axis).contiguous()


def _is_spread(lines: Tensor, lowest: int) -> bool:
    """Whether in each line every value comes once (a permutation), or every value up to the highest comes (graphs)."""
    different = [len(line.unique()) for line in lines.reshape(-1, lines.shape[-1])]
    every = int(lines.max()) - lowest + 1
    return all(n == lines.shape[-1] for n in different) or all(n == every for n in different)


def _fold(tensor: Tensor, highest: int) -> Tensor:
    lowest = min(int(tensor.min()), highest)
    return torch.where(tensor > highest, lowest + (tensor - lowest) % (highest - lowest + 1), tensor)


def _edge(request: LeafResizing) -> Tensor | None:
    """The last rung: the last slice again, and integers below every dim that shrank."""
    if request.level < 2:
        return None
    made = _plain(request)
    if not request.is_integer:
        return made
    known_sizes, highest = request.example.sizes, int(request.tensor.max())
    shrunk = [size for dim, size in request.sizes.items() if size < known_sizes[dim] and known_sizes[dim] >= highest]
    return made.clamp(max=max(min(shrunk) - 1, 0)) if shrunk else made


def _unchanged(request: LeafResizing) -> Tensor | None:
    is_free = request.is_second and (request.level == 0 or request.is_float)
    return request.tensor if request.is_same_shape and not is_free else None


def _mask(request: LeafResizing) -> Tensor | None:
    mask = read_mask(request.tensor)
    if mask is None:
        return None
    anew = request.is_second and request.level == 0
    holds = resize_mask(mask.holds, request.shape, square=request.is_square, anew=anew, generator=request.generator)
    return mask.with_values(holds, request.tensor.dtype)


def _constant(request: LeafResizing) -> Tensor | None:
    """One value everywhere, such as a state of zeros; a single element shows no constant."""
    tensor = request.tensor
    if tensor.numel() < 2 or not bool((tensor == tensor.flatten()[0]).all()):
        return None
    made = tensor.flatten()[0].expand(request.shape)
    if not (request.is_second and request.is_float):
        return made
    return made * (0.5 + 0.5 * torch.rand(request.shape, generator=request.generator, dtype=torch.float64))


def _tiled(request: LeafResizing) -> Tensor | None:
    return _plain(request) if request.level else None


def _flag(request: LeafResizing) -> Tensor | None:
    """A lone True or False chooses a path, which is not ours to change."""
    return request.tensor if request.tensor.dtype == torch.bool else None


def _rising(request: LeafResizing) -> Tensor | None:
    """Integers that rise strictly along an axis, such as time stamps, rise on."""
    if not request.is_integer:
        return None
    axis = next((a for a in request.moving if resized_integers.rises_strictly(request.tensor, a)), None)
    if axis is None:
        return None
    others = [n if a != axis else request.tensor.shape[axis] for a, n in enumerate(request.shape)]
    lines = resized_slices.tile(request.tensor, others)
    size, keep = request.shape[axis], not request.is_second
    return resized_integers.continue_steps(lines, axis, size, generator=request.generator, keep=keep)


def _integers(request: LeafResizing) -> Tensor | None:
    if not request.is_integer:
        return None
    tensor = request.tensor
    if request.is_second:
        made = resized_integers.redraw_integers(tensor, request.shape, generator=request.generator)
    else:
        made = tensor
        for axis in request.moving:
            made = resized_integers.grow_integers(made, axis, request.shape[axis], generator=request.generator)
    return resized_slices.restore_order(resized_integers.keep_highest(made, tensor), tensor, request.moving)


def _symmetric(request: LeafResizing) -> Tensor | None:
    last = request.tensor.dim() - 1
    is_one_dim = request.is_square and request.axes[-1] == request.axes[-2] and last in request.moving
    if not is_one_dim or not resized_slices.is_symmetric(request.tensor):
        return None
    made = request.tensor
    for axis in request.moving:
        if axis < last - 1:
            made = _mix(request, made, axis)
    return resized_slices.mix_symmetric(
        made, request.shape[-1], generator=request.generator, keep=not request.is_second
    )


def _floats(request: LeafResizing) -> Tensor:
    made = request.tensor
    for axis in request.moving:
        made = _mix(request, made, axis)
    if request.is_second and not request.moving:
        made = resized_slices.draw_bend(made, generator=request.generator)
    return _with_invariants(request, made)


def _mix(request: LeafResizing, made: Tensor, axis: int) -> Tensor:
    keep, size = not request.is_second, request.shape[axis]
    return resized_slices.make_recipe(made, axis, size, generator=request.generator, keep=keep).apply(made, axis)


def _with_invariants(request: LeafResizing, made: Tensor) -> Tensor:
    """What holds of every line of the example holds of every line of the result."""
    if request.is_float:
        made = resized_slices.restore_norm(made, request.tensor, tolerance=request.tolerance)
    is_ordered = request.is_integer or made.is_floating_point()
    return resized_slices.restore_order(made, request.tensor, request.dynamic) if is_ordered else made


RULES: tuple[Callable[[LeafResizing], Tensor | None], ...] = (
    _nothing,
    resized_integers.sizes,
    resized_integers.offsets,
    resized_integers.arange,
    _bounded,
    _edge,
    _unchanged,
    _mask,
    _constant,
    _tiled,
    _flag,
    _rising,
    _integers,
    _symmetric,
    _floats,
)


# ---- the lower rungs of the ladder


def _plain(request: LeafResizing) -> Tensor:
    """The slices of the example again, in turn (level 1) or the last one (level 2); a second content bends floats."""
    copy = resized_slices.tile if request.level == 1 else resized_slices.repeat_edge
    made = copy(request.tensor, request.shape)
    if request.is_second and request.is_float and read_mask(request.tensor) is None:
        made = resized_slices.draw_bend(made, generator=request.generator)
    return _with_invariants(request, made)
