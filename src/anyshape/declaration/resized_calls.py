"""Valid calls at other sizes, made from the user's one example call.

Shapes alone do not make a call valid: lengths stay below the sequence, edges point at nodes that exist, position ids
go on counting, rows of probabilities sum to one. And a wrong file must not be able to hide: no slice is a copy of
another where the example allows it, and a second content shows what the example does not.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from anyshape.declaration import resized_values
from anyshape.declaration.resized_masks import read_mask, resize_mask
from anyshape.declaration.resized_values import draw_offsets, even_step, rises_strictly, tile
from anyshape.sizes import budgets
from anyshape.sizes.notation import Expression, Sizes, evaluator, parse_expression


@dataclass(frozen=True)
class Example:
    """One valid call, as leaves, and which axis follows which dim."""

    leaves: Mapping[str, Any]
    """By dotted name: tensors and anything else."""
    axes: Mapping[str, tuple[Expression | None, ...]]
    """Of tensor leaves: one entry per axis, None where it is static; a leaf that is not here is static."""
    scalars: Mapping[str, Expression]
    """Of the Python integers that follow dims."""
    sizes: Mapping[str, int]
    """Of every dim, in this example."""


@dataclass(frozen=True)
class ValueRange:
    """Integer values of one leaf are bounded by dims: `< dim` for an index, `<= dim` for a length."""

    kind: Literal["index", "length"]
    dims: tuple[str, ...]
    """Or expressions of them: `n * k` for an index into what was flattened."""

    def sizes_at(self, sizes: Mapping[str, int]) -> list[int]:
        return [evaluator(dim)(sizes) for dim in self.dims]

    def highest(self, sizes: Mapping[str, int]) -> int:
        """The highest value that is valid at these sizes; 0 where none is."""
        return max(min(self.sizes_at(sizes)) - (self.kind == "index"), 0)


@dataclass(frozen=True)
class LeafResizing:
    """One leaf to resize. The tensor is wide (bool, int64, float64 or complex128) and on the CPU."""

    example: Example
    sizes: Mapping[str, int]
    tensor: Tensor
    axes: tuple[Expression | None, ...]
    shape: tuple[int, ...]
    range: ValueRange | None
    is_second: bool
    level: int
    tolerance: float
    generator: torch.Generator

    @property
    def is_integer(self) -> bool:
        return self.tensor.dtype == torch.int64

    @property
    def is_float(self) -> bool:
        return self.tensor.is_floating_point() or self.tensor.is_complex()

    @property
    def is_same_shape(self) -> bool:
        return self.shape == tuple(self.tensor.shape)

    @property
    def dynamic(self) -> list[int]:
        return [axis for axis, expression in enumerate(self.axes) if expression is not None]

    @property
    def moving(self) -> list[int]:
        """The axes to make slices for: those whose size changes; for a second content every dynamic one."""
        if self.is_second:
            return self.dynamic
        return [axis for axis, size in enumerate(self.shape) if size != self.tensor.shape[axis]]

    @property
    def is_square(self) -> bool:
        """Whether the last two axes follow the same dim, or are static and of one size."""
        if len(self.axes) < 2:
            return False
        rows, columns = self.axes[-2:]
        if rows is None or columns is None:
            return rows is columns and self.shape[-1] == self.shape[-2]
        return not set(rows.names).isdisjoint(columns.names)


# ---- the rules by which one tensor is resized: the first of a table that fits makes it
#
# Each knows one meaning a tensor can have (sizes, positions, offsets, a mask, ...) and gives the tensor at new sizes
# with that meaning kept, or None where the example does not show it.


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
    is_row = resizing.is_integer and tensor.dim() == 1 and len(tensor) > 1
    if not is_row or tensor[0] != 0 or bool((tensor.diff() < 0).any()):
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
    followed = _expressions_of_size(resizing.example, int(first.flatten()[0]))
    return next((expression for expression in followed if expression not in resizing.axes), None)


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
    is_unit_interval = tensor.max().item() == 1 and tensor.min().item() in (0, -1)
    if not resizing.is_integer and is_unit_interval:
        step = (tensor.max() - tensor.min()).item() / max(size - 1, 1)  # coordinates stay within their interval
    count = torch.arange(size, dtype=tensor.dtype).view([-1 if a == axis else 1 for a in range(tensor.dim())])
    return lines + count * step


# ---- rules for what a tensor holds


def _bounded_integers(resizing: LeafResizing) -> Tensor | None:
    """Integers below a dim's size: the room that a larger dim gives is used, that which a smaller one takes is not."""
    if resizing.range is None:
        return None
    tensor, sizes, known_sizes = resizing.tensor, resizing.sizes, resizing.example.sizes
    highest = resizing.range.highest(sizes)
    if resizing.level:
        folded = _folded_below(_repeated_slices(resizing), highest)
        return resized_values.restore_order(folded, tensor, resizing.dynamic)
    made = _draw_bounded(resizing, resizing.range.kind, highest)
    if not resizing.is_second and resizing.range.sizes_at(sizes) == resizing.range.sizes_at(known_sizes):
        common = tuple(slice(min(a, b)) for a, b in zip(made.shape, tensor.shape, strict=True))
        made[common] = tensor[common]
    elif int(tensor.max()) == resizing.range.highest(known_sizes) and int(made.max()) < highest:
        made.view(-1)[0] = highest  # one length is the full one, the last graph is named
    return resized_values.restore_order(made, tensor, resizing.dynamic)


def _draw_bounded(resizing: LeafResizing, kind: str, highest: int) -> Tensor:
    tensor, shape = resizing.tensor, resizing.shape
    lowest = int(tensor.min())
    if kind == "index":
        lowest = min(lowest, 0)
    elif resizing.is_second:
        lowest = min(lowest, 1)
    lowest = min(lowest, highest)
    if not shape:
        return resized_values.draw_integers(shape, lowest, highest, generator=resizing.generator)
    axis = resizing.dynamic[-1] if resizing.dynamic else len(shape) - 1
    lines = (*shape[:axis], *shape[axis + 1 :], shape[axis])
    spread = _is_spread(tensor.movedim(axis, -1), lowest)
    drawn = resized_values.draw_integers(lines, lowest, highest, generator=resizing.generator, spread=spread)
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
    axis = next((a for a in resizing.moving if resized_values.rises_strictly(resizing.tensor, a)), None)
    if axis is None:
        return None
    others = [n if a != axis else resizing.tensor.shape[axis] for a, n in enumerate(resizing.shape)]
    lines = resized_values.tile(resizing.tensor, others)
    size, keep = resizing.shape[axis], not resizing.is_second
    return resized_values.continue_steps(lines, axis, size, generator=resizing.generator, keep=keep)


def _other_integers(resizing: LeafResizing) -> Tensor | None:
    if not resizing.is_integer:
        return None
    tensor = resizing.tensor
    if resizing.is_second:
        made = resized_values.redraw_integers(tensor, resizing.shape, generator=resizing.generator)
    else:
        made = tensor
        for axis in resizing.moving:
            made = resized_values.grow_integers(made, axis, resizing.shape[axis], generator=resizing.generator)
    return resized_values.restore_order(resized_values.keep_highest(made, tensor), tensor, resizing.moving)


def _symmetric_matrix(resizing: LeafResizing) -> Tensor | None:
    last = resizing.tensor.dim() - 1
    is_one_dim = resizing.is_square and resizing.axes[-1] == resizing.axes[-2] and last in resizing.moving
    if not is_one_dim or not resized_values.is_symmetric(resizing.tensor):
        return None
    made = resizing.tensor
    for axis in resizing.moving:
        if axis < last - 1:
            made = _mixed_along(resizing, made, axis)
    size, keep = resizing.shape[-1], not resizing.is_second
    return resized_values.mix_symmetric(made, size, generator=resizing.generator, keep=keep)


def _mixed_floats(resizing: LeafResizing) -> Tensor:
    made = resizing.tensor
    for axis in resizing.moving:
        made = _mixed_along(resizing, made, axis)
    if resizing.is_second and not resizing.moving:
        made = resized_values.draw_bend(made, generator=resizing.generator)
    return _with_invariants(resizing, made)


def _mixed_along(resizing: LeafResizing, made: Tensor, axis: int) -> Tensor:
    keep, size = not resizing.is_second, resizing.shape[axis]
    return resized_values.make_recipe(made, axis, size, generator=resizing.generator, keep=keep).apply(made, axis)


def _with_invariants(resizing: LeafResizing, made: Tensor) -> Tensor:
    """What holds of every line of the example holds of every line of the result."""
    if resizing.is_float:
        made = resized_values.restore_norm(made, resizing.tensor, tolerance=resizing.tolerance)
    is_ordered = resizing.is_integer or made.is_floating_point()
    return resized_values.restore_order(made, resizing.tensor, resizing.dynamic) if is_ordered else made


# ---- the lower rungs of the ladder


def _repeated_slices(resizing: LeafResizing) -> Tensor:
    """The slices of the example again, in turn (level 1) or the last one (level 2); a second content bends floats."""
    copy = resized_values.tile if resizing.level == 1 else resized_values.repeat_edge
    made = copy(resizing.tensor, resizing.shape)
    if resizing.is_second and resizing.is_float and read_mask(resizing.tensor) is None:
        made = resized_values.draw_bend(made, generator=resizing.generator)
    return _with_invariants(resizing, made)


# ---- all rules, the most telling first

RULES: tuple[Callable[[LeafResizing], Tensor | None], ...] = (
    _without_elements,
    sizes_of_dims,
    offsets_of_parts,
    positions,
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

# ---- a call

LEVELS = 3
"""The ladder a caller climbs while the model refuses: 0 meaningful content; 1 tiled; 2 the edge repeated and integers
kept below the dims that shrank. From 1 on a second content differs in its floats alone. Below these lie the rungs on
which integers and flags mean nothing any more, so that what the model refuses there is the size."""


PLAINEST_LEVEL = LEVELS + 1
"""All integers and flags are zero: in any vocabulary, and before the end of anything."""


def levels_of(example: Example) -> int:
    """The rungs of the whole ladder."""
    return LEVELS + len(_bare_rungs(example))


def _bare_rungs(example: Example) -> list[tuple[str, tuple[str, ...]]]:
    """How integers and flags are filled, and which: all; where there are several each alone, in a call with meaning."""
    tensors = {name: leaf for name, leaf in example.leaves.items() if isinstance(leaf, Tensor) and leaf.numel()}
    whole = tuple(name for name, leaf in tensors.items() if not (leaf.is_floating_point() or leaf.is_complex()))
    if not whole:
        return []
    alone = [(name,) for name in whole] if len(whole) > 1 else []
    return [(fill, names) for names in (whole, *alone) for fill in ("cut", "zeros", "ones")]


def _bare_tensor(tensor: Tensor, resized: Tensor, fill: str) -> Tensor:
    """Zeros, which are an index of all that is not empty; ones, lengths of the same; or the example's own values."""
    shape, wide = resized.shape, tensor.detach().cpu().to(_wide_dtype(tensor.dtype))
    is_cut = fill == "cut" and resized.numel()
    made = tile(wide, shape) if is_cut else torch.full(shape, fill == "ones", dtype=wide.dtype)
    return made.to(resized.device, resized.dtype)


def is_given(example: Example, sizes: Sizes, content: int) -> bool:
    """Whether this is the user's own call, which is never made anew."""
    return content == 0 and all(sizes[dim] == size for dim, size in example.sizes.items())


def resize(
    example: Example, sizes: Sizes, *, ranges: Mapping[str, ValueRange], content: int = 0, level: int = 0, seed: int = 0
) -> dict[str, Any]:
    """All leaves of a call at these sizes.

    `content` 0 keeps the example's values as far as they go; each other number is another content, which shows what
    the example does not: ragged masks, other values. The same arguments give the same leaves.
    """
    if is_given(example, sizes, content):
        return {name: _without_gradient(leaf) for name, leaf in example.leaves.items()}
    if level >= LEVELS:
        return with_bare_leaves(example, resize(example, sizes, ranges=ranges, content=content, seed=seed), level)
    resized: dict[str, Any] = {}
    for name, leaf in example.leaves.items():
        if name in example.scalars:
            resized[name] = example.scalars[name].value(sizes)
        elif isinstance(leaf, Tensor):
            axes = example.axes.get(name, (None,) * leaf.dim())
            shape = tuple(n if e is None else e.value(sizes) for n, e in zip(leaf.shape, axes, strict=True))
            wide = leaf.detach().cpu().to(_wide_dtype(leaf.dtype))
            lot = torch.Generator().manual_seed(_leaf_seed(seed, content, name, sizes))
            bound, is_second = ranges.get(name), content > 0
            resizing = LeafResizing(example, sizes, wide, axes, shape, bound, is_second, level, _tolerance(leaf), lot)
            resized[name] = _in_own_type(resized_tensor(resizing), resizing, leaf)
        else:
            resized[name] = leaf
    return resized


def with_bare_leaves(example: Example, resized: Mapping[str, Any], level: int) -> dict[str, Any]:
    """A call with meaning, and what the lower rungs make of its integers and flags."""
    fill, bare = _bare_rungs(example)[level - LEVELS]
    return {**resized, **{name: _bare_tensor(example.leaves[name], resized[name], fill) for name in bare}}


def _without_gradient(leaf: Any) -> Any:
    return leaf.detach() if isinstance(leaf, Tensor) and leaf.requires_grad else leaf


def _leaf_seed(seed: int, content: int, name: str, sizes: Mapping[str, int]) -> int:
    text = repr((seed, content, name, sorted(sizes.items())))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big")


def _tolerance(leaf: Tensor) -> float:
    return 1e-4 + 2 * torch.finfo(leaf.dtype).eps if leaf.is_floating_point() else 1e-4


def _wide_dtype(dtype: torch.dtype) -> torch.dtype:
    # uint16 and its like have hardly any operations, half floats too few digits to mix
    if dtype.is_complex:
        return torch.complex128
    if dtype.is_floating_point:
        return torch.float64
    return dtype if dtype == torch.bool else torch.int64


def _in_own_type(result: Tensor, resizing: LeafResizing, leaf: Tensor) -> Any:
    """As a tensor of the leaf's kind: the leaf itself where nothing changed, else one that shares nothing with it."""
    if result is resizing.tensor:
        return _without_gradient(leaf)
    return result.to(device=leaf.device, dtype=leaf.dtype, copy=True, memory_format=torch.contiguous_format)


# ---- which dims bound the values of an integer leaf: found by asking the model


def learn_value_ranges(example: Example, runs: Callable[[Mapping[str, Any]], bool]) -> dict[str, ValueRange]:
    """The value ranges that the model shows by refusing values; `runs` tells whether it accepts a full set of leaves.

    For the size of each dim, a value at it and just beyond is tried: an index stops below the size, a length at it.
    """
    integers = [name for name, leaf in example.leaves.items() if isinstance(leaf, Tensor) and _holds_integers(leaf)]
    return {name: found for name in integers if (found := _value_range_of(example, name, runs)) is not None}


def _holds_integers(leaf: Tensor) -> bool:
    return _wide_dtype(leaf.dtype) == torch.int64 and bool(leaf.numel())


def _value_range_of(example: Example, name: str, runs: Callable[[Mapping[str, Any]], bool]) -> ValueRange | None:
    leaf: Tensor = example.leaves[name]
    highest = int(leaf.to(torch.int64).max())
    known = _possible_bounds(example)
    sizes = sorted({s for s in known.values() if highest <= s < torch.iinfo(leaf.dtype).max})

    def accepts(value: int) -> bool:
        return value <= highest or runs({**example.leaves, name: _with_highest(leaf, value)})

    if not sizes or accepts(sizes[-1] + 1):
        return None  # whatever bounds the values is larger than every dim
    for size in sizes:
        kind = _stops_at(size, accepts)
        dims = [d for d, s in known.items() if s == size and kind and _bound_follows(example, name, d, kind, runs)]
        if kind and dims:
            return ValueRange(kind, tuple(dims))
    return None


def _possible_bounds(example: Example) -> dict[str, int]:
    """What may bound values: dims, what stands on an axis, and products and sums of two dims."""
    written = [e.text for axes in example.axes.values() for e in axes if e is not None]
    pairs = [f"{d} {sign} {e}" for d, e in itertools.combinations(example.sizes, 2) for sign in "*+"]
    texts = dict.fromkeys((*example.sizes, *written, *pairs[: budgets.MOST_PAIRS_THAT_BOUND_VALUES]))
    return {text: evaluator(text)(example.sizes) for text in texts}


def _stops_at(size: int, accepts: Callable[[int], bool]) -> Literal["index", "length"] | None:
    if accepts(size + 1):
        return None
    if accepts(size):
        return "length"
    return "index" if accepts(size - 1) else None


def _bound_follows(
    example: Example, name: str, dim: str, kind: Literal["index", "length"], runs: Callable[[Mapping[str, Any]], bool]
) -> bool:
    """Whether the bound moves with the dim; else it is a constant, a small vocabulary say, that equals its size.

    Where the dim can neither grow by one nor double, it is taken to.
    """
    names = parse_expression(dim).names
    for factor, more in ((1, 1), (2, 0)):
        sizes = {d: factor * size + more if d in names else size for d, size in example.sizes.items()}
        grown = resize(example, sizes, ranges={}, level=1)
        highest = ValueRange(kind, (dim,)).highest(sizes)
        if runs({**grown, name: _with_highest(grown[name], highest)}):
            return True
        if runs(grown):
            return False
    return True


def _with_highest(leaf: Tensor, value: int) -> Tensor:
    """A copy in which the highest element has this value."""
    changed = leaf.detach().clone(memory_format=torch.contiguous_format)
    if changed.numel():
        changed.view(-1)[int(leaf.to(torch.int64).argmax())] = value
    return changed
