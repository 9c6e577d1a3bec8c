"""Which sizes to time: those that are asked for, or a few that show how time grows, each dim by itself."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from anyshape.errors import DeclarationError
from anyshape.sizes import budgets
from anyshape.sizes.notation import SizeRange, Sizes
from anyshape.sizes.spelling import argument

_STEP = 4
"""From one size of a dim to the next: three of them show a square from a line."""


@dataclass(frozen=True)
class SizesOffered:
    """What there is to choose from."""

    usual: Sizes
    """Of dims that nobody asks about."""
    ranges: Mapping[str, SizeRange]
    admit: Callable[[Sizes], Sizes | None]
    """Moves sizes inside of what the file is for; None where it cannot."""
    work: Callable[[Sizes], float]
    """Predicted, of one run."""


def sizes_to_time(offered: SizesOffered, asked: Mapping[str, SizeRange]) -> tuple[list[Sizes], list[Sizes]]:
    """The sizes, from small to large, and those that were asked for and that relations exclude."""
    if not asked:
        return _from_small_to_large(_each_dim_alone(offered)), []
    columns = {dim: _ladder_in(sizes, offered.usual[dim]) for dim, sizes in asked.items()}
    count = math.prod(map(len, columns.values()))
    if count > budgets.MOST_SIZES_TIMED:
        most = budgets.MOST_SIZES_TIMED
        raise DeclarationError(f"{argument('sizes')} asks for {count:,} sizes, more than the {most} that are timed")
    wanted: list[Sizes] = [dict(zip(columns, row, strict=True)) for row in itertools.product(*columns.values())]
    found = [(one, offered.admit({**offered.usual, **one})) for one in wanted]
    # what is asked for stays as it is: only the dims that nobody asked about may follow
    kept = [sizes for one, sizes in found if sizes is not None and _holds(sizes, one)]
    excluded = [one for one, sizes in found if sizes is None or not _holds(sizes, one)]
    return _from_small_to_large(kept), excluded


def _holds(sizes: Sizes, asked: Sizes) -> bool:
    return all(sizes[dim] == size for dim, size in asked.items())


def _ladder_in(sizes: SizeRange, usual: int) -> list[int]:
    """Numbers as they are; of a range a few, each some times the one before."""
    if sizes.values is not None:
        return list(sizes.values)
    start = max(sizes.lo, 1)
    last = max(usual, start) * _STEP**2 if sizes.hi is None else sizes.hi
    steps = max(1, math.ceil(math.log(max(last, start) / start, _STEP)))
    rungs = (start * (last / start) ** (step / steps) for step in range(steps + 1))
    return list(dict.fromkeys(sizes.nearest(round(size)) for size in (sizes.lo, *rungs)))


def _each_dim_alone(offered: SizesOffered) -> list[Sizes]:
    steps = 3 if len(offered.usual) == 1 else 2
    wanted: list[Sizes] = [offered.usual]
    for dim, size in offered.usual.items():
        wanted += [{**offered.usual, dim: max(size, 1) * _STEP**power} for power in range(1, steps + 1)]
    chosen: dict[tuple[int, ...], Sizes] = {}
    for sizes in wanted:
        nearest = {dim: offered.ranges[dim].nearest(size) for dim, size in sizes.items()}
        admitted = offered.admit(nearest)
        if admitted is not None and (not chosen or offered.work(admitted) <= budgets.WORK_OF_A_TIMED_SIZE):
            chosen.setdefault(tuple(admitted.values()), admitted)
    return list(chosen.values())


def _from_small_to_large(sizes: list[Sizes]) -> list[Sizes]:
    unique = {tuple(one.values()): one for one in sizes}
    return sorted(unique.values(), key=lambda one: (math.prod(one.values()), tuple(one.values())))
