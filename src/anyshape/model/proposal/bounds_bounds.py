"""From which size to which a dim runs: asked at the smallest, and just beyond every table of the model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from anyshape.model.proposal.bounds_trials import Trials
from anyshape.model.proposal.layout import Dim
from anyshape.sizes.notation import SizeRange

_FURTHEST = 4096
_MODERATE = 100
"""Where no table tells, a dim is tried up to here, or to some times its size."""


@dataclass(frozen=True)
class Bounded:
    """A dim with its name and the sizes at which it ran; `hi` is None where no end was seen."""

    dim: Dim
    name: str
    lo: int
    hi: int | None = None

    @property
    def text(self) -> str | None:
        """In the notation of `sizes=`; None for `1..`, which needs no saying."""
        shown = str(SizeRange(self.lo, self.hi, self.dim.step))
        return None if shown == "1.." else shown


def unbounded(dim: Dim, name: str) -> Bounded:
    """Before anything was asked: from the smallest size on the grid."""
    return Bounded(dim, name, dim.size if dim.move.is_lowest else 1 + (dim.size - 1) % dim.step)


def find_bounds(trials: Trials, dim: Dim, name: str, tables: Sequence[int]) -> Bounded:
    """How far a dim goes down and up, all others at their size in the example; a past may be empty."""

    def runs(size: int) -> bool:
        return trials.is_small({name: size}) and trials.runs({name: size})

    smallest = 0 if name.startswith("past") else 1
    lowest = smallest + (dim.size - smallest) % dim.step
    lo = dim.size if lowest >= dim.size else _last_that(runs, dim.size, lowest, dim.step)
    hi = None if dim.base[1] is None else _upper(trials, dim, name, tables, runs)
    return Bounded(dim, name, lo, hi)


def _last_that(runs: Callable[[int], bool], good: int, bad: int, step: int) -> int:
    """The last size from a good one towards another that runs, by bisection."""
    if runs(bad):
        return bad
    while abs(bad - good) > step:
        middle = good + (bad - good) // (2 * step) * step
        middle = middle if middle != good else good + (step if bad > good else -step)
        if runs(middle):
            good = middle
        else:
            bad = middle
    return good


def _upper(trials: Trials, dim: Dim, name: str, tables: Sequence[int], runs: Callable[[int], bool]) -> int | None:
    """The largest size that runs, where a larger one was seen to fail."""
    good = dim.size
    for size in _beyond(dim, tables):
        if not trials.is_small({name: size}):
            break
        if not runs(size):
            last = size - dim.step
            end = last if last > good and runs(last) else _last_that(runs, good, last, dim.step)
            return None if runs(end + 2 * dim.step) else end  # a single size that fails is no end
        good = size
    return None


def _beyond(dim: Dim, tables: Sequence[int]) -> Iterator[int]:
    """The first size above each table, on the grid of the dim; and a moderate one."""
    wanted = {length + 1 for length in tables if dim.size <= length < _FURTHEST}
    wanted |= {4 * dim.size + 3, max(4 * dim.size + 3, _MODERATE)}
    yield from sorted({size + (dim.size - size) % dim.step for size in wanted})


def hold_together(trials: Trials, dims: Sequence[Bounded]) -> bool:
    """Whether all upper bounds may be reached at once."""
    corner = {one.name: one.hi for one in dims if one.hi is not None}
    return len(corner) < 2 or not trials.is_small(corner) or trials.runs(corner)
