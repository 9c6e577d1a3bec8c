"""Relations between dims that the user declares: `src >= tgt`, `height*width <= 1_000_000`, `seq % 8 == 0`.

What they say of one dim alone becomes part of its range; the rest is asked of every choice of sizes. Relations that
exclude each other are found here, before any model runs.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from anyshape.errors import DeclarationError
from anyshape.sizes import budgets
from anyshape.sizes.notation import Condition, SizeRange, Sizes, did_you_mean, listed, parse_conditions
from anyshape.sizes.spelling import argument


def parse_where(where: Any, dims: Iterable[str]) -> tuple[Condition, ...]:
    """Each text as a relation between declared dims."""
    if isinstance(where, str) or not isinstance(where, Sequence) or not all(isinstance(one, str) for one in where):
        raise DeclarationError(f'where is {where!r}: give a list of relations, such as ["src >= tgt"]')
    found = tuple(_leading_name(condition) for text in where for condition in parse_conditions(text))
    for condition in found:
        _confirm_names(condition, tuple(dims))
    return found


def _leading_name(condition: Condition) -> Condition:
    """`4 <= seq` is read as `seq >= 4`, `past + seq == total` as `total == past + seq`: what follows stands left."""
    if condition.right.is_name and not condition.left.is_name and not condition.others:
        return Condition(condition.right, _MIRRORED.get(condition.relation, condition.relation), condition.left)
    return condition


_MIRRORED = {"<=": ">=", ">=": "<=", "<": ">", ">": "<"}


def _confirm_names(condition: Condition, dims: Sequence[str]) -> None:
    if not condition.names:
        raise DeclarationError(f"{argument('where')} has `{condition}`, which names no dim")
    for name in condition.names:
        if name not in dims:
            known = f"the shapes only name {listed(dims)}" if dims else "no axis is dynamic"
            raise DeclarationError(f"{argument('where')} has `{condition}`, but {known}{did_you_mean(name, dims)}")


# ---- what relations leave of one range


def narrowed_range(declared: SizeRange, conditions: Iterable[Condition], dim: str) -> SizeRange:
    """A range as the conditions on this dim alone leave it; those of other dims, and of several, are left out."""
    conditions = [condition for condition in conditions if condition.names == (dim,)]
    if declared.values is not None:
        kept = tuple(v for v in declared.values if all(c.holds({dim: v}) for c in conditions))
        return SizeRange(lo=kept[0], hi=kept[-1], values=kept) if kept else declared
    bounds = [bound for condition in conditions if (bound := _bounds_of(condition)) is not None]
    multiples = [condition for condition in conditions if _MULTIPLE.fullmatch(str(condition))]
    step = math.lcm(declared.step, *(int(str(c).split()[2]) for c in multiples))
    lowest = max([declared.lo, *(lo for lo, _ in bounds if lo is not None)])
    highest = min([hi for hi in (declared.hi, *(hi for _, hi in bounds)) if hi is not None], default=None)
    first = declared.lo - (declared.lo - lowest) // declared.step * declared.step
    starts = (s for s in range(first, first + step, declared.step) if all(c.holds({dim: s}) for c in multiples))
    lo = next(starts, None)
    if lo is None or (highest is not None and highest < lo):
        return declared
    return SizeRange(lo, None, step) if highest is None else SizeRange(lo, None, step).up_to(highest)


_MULTIPLE = re.compile(r"\w+ % [1-9]\d* == \d+")


def _bounds_of(condition: Condition) -> tuple[int | None, int | None] | None:
    """The lowest and the highest size of `dim <= 512` and its like."""
    if not condition.left.is_name or condition.right.names or condition.others:
        return None
    number = condition.right.value({})
    ends: dict[str, tuple[int | None, int | None]] = {
        "<=": (None, number),
        "<": (None, number - 1),
        ">=": (number, None),
        ">": (number + 1, None),
        "==": (number, number),
    }
    return ends.get(condition.relation)


# ---- sizes that fit all of them


def fitting_sizes(start: Sizes, ranges: Mapping[str, SizeRange], where: Sequence[Condition]) -> Sizes:
    """The example's sizes, moved into the ranges and relations as little as it takes; a sentence where nothing fits."""
    moved = {dim: ranges[dim].nearest(size) for dim, size in start.items()}
    if all(condition.holds(moved) for condition in where):
        return moved
    found = _sizes_that_fit(moved, ranges, where)
    if found is None:
        raise DeclarationError(_contradiction(moved, ranges, where))
    return found


def _sizes_that_fit(start: Sizes, ranges: Mapping[str, SizeRange], where: Sequence[Condition]) -> Sizes | None:
    """Near the start; else near the smallest sizes, where most relations hold."""
    return _sizes_near(start, ranges, where) or _sizes_near({dim: ranges[dim].lo for dim in start}, ranges, where)


def _sizes_near(start: Sizes, ranges: Mapping[str, SizeRange], where: Sequence[Condition]) -> Sizes | None:
    """Dims one after the other, each at the nearest size at which no relation between known dims is broken."""
    dims = sorted({name for condition in where for name in condition.names}, key=list(start).index)
    steps = itertools.count()

    def extend(known: Sizes) -> Sizes | None:
        dim = next((one for one in dims if one not in known), None)
        if dim is None:
            return known
        for size in _sizes_to_try(dim, start[dim], ranges[dim], where, known):
            if next(steps) > budgets.MOST_STEPS_TO_FIT:
                return None
            further = {**known, dim: size}
            fits = all(c.holds(further) for c in where if further.keys() >= set(c.names))
            if fits and (found := extend(further)) is not None:
                return found
        return None

    found = extend({})
    return None if found is None else {**start, **found}


def _sizes_to_try(dim: str, start: int, declared: SizeRange, where: Sequence[Condition], known: Sizes) -> list[int]:
    """Sizes worth a try, the nearest first: around the start, around the relations' numbers, and where one turns."""
    mine = [condition for condition in where if dim in condition.names]
    numbers = {number for condition in mine for number in _numbers_in(condition)}
    wanted = {start, declared.lo, declared.hi or declared.lo, *numbers}
    near = range(-budgets.SIZES_NEAR, budgets.SIZES_NEAR + 1)
    wanted |= {size + steps * declared.step for size in tuple(wanted) for steps in near}
    for condition in mine:
        if set(condition.names) - known.keys() == {dim}:
            wanted |= set(_turning_points(condition, dim, start, declared, known))
    inside = {declared.nearest(size) for size in wanted if size >= 0}
    return sorted(inside, key=lambda size: (abs(size - start), size))


def _numbers_in(condition: Condition) -> list[int]:
    texts = re.findall(r"\b\d+\b", str(condition))
    return [int(text) for text in texts if len(text) <= len(str(budgets.LARGEST_SIZE))]


def _turning_points(condition: Condition, dim: str, start: int, declared: SizeRange, known: Sizes) -> Iterator[int]:
    """Where a relation of one unknown begins to hold: by doubling away from the start, then by bisection."""
    if condition.relation == "==" and condition.left.is_name and condition.left.text == dim:
        value = condition.right.value_or_none(known) if known.keys() >= set(condition.right.names) else None
        yield from () if value is None else (value,)
    far = [start + 2**power for power in range(40)], [start - 2**power for power in range(start.bit_length())]
    for ahead in far:
        size = next((s for s in map(declared.nearest, ahead) if condition.holds({**known, dim: s})), None)
        if size is None:
            continue
        broken = start
        while abs(size - broken) > 1:
            middle = (size + broken) // 2
            holds = condition.holds({**known, dim: middle})
            size, broken = (middle, broken) if holds else (size, middle)
        yield from (size, size + (1 if size > start else -1) * declared.step)


def _contradiction(start: Sizes, ranges: Mapping[str, SizeRange], where: Sequence[Condition]) -> str:
    """The fewest relations that nothing fits, and the smallest sizes with the relation that is broken there."""
    needed = list(where)
    for condition in where:
        fewer = [one for one in needed if one is not condition]
        if fewer and _sizes_that_fit(start, ranges, fewer) is None:
            needed = fewer
    dims = list(dict.fromkeys(name for condition in needed for name in condition.names))
    smallest = {dim: ranges[dim].lo for dim in dims}
    broken = next((condition for condition in needed if not condition.holds(smallest)), needed[0])
    relations = " and ".join(f"`{condition}`" for condition in needed)
    spans = ", ".join(f"{dim} {ranges[dim]}" for dim in dims)
    sizes = ", ".join(f"{dim} = {size}" for dim, size in smallest.items())
    return f"no sizes were found that fit {relations} with {spans}: at the smallest, {sizes}, `{broken}` does not hold"
