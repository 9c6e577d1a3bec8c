"""Checking a batch without its model: the static file, sample by sample, says what any number of samples must give.

That holds where samples do not interact. A control run shows it: other values in all the other samples must leave a
sample's output as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from anyshape.bench.batches import taken
from anyshape.bench.bench import Checker, Judged, judge_until_wrong
from anyshape.bench.judgement import are_close
from anyshape.results.verification import Failure
from anyshape.runtime.session import Array
from anyshape.sizes import budgets
from anyshape.verification.static_twin import Pair, Parts, TwinRun, checker_beside_twin, whole

_CONTROL_SAMPLES = (101, 102)
"""Contents that no check uses."""


def independent_outputs(pair: Pair, dim: str, outputs: Sequence[int]) -> list[int]:
    """The outputs in which each sample along the dim depends on itself alone, as control runs show it."""
    feeds, others = (pair.feeds(pair.sizes, number) for number in _CONTROL_SAMPLES)
    before, after = pair.expected(feeds, pair.sizes), pair.expected(others, pair.sizes)
    own = pair.sizes[dim]
    apart = [index for index in outputs if _grows_by_samples(pair, index, dim)]
    # the ends and the middle: a sample may lean on the one before or behind it alone
    for kept in sorted({0, own // 2, own - 1}) if own > 1 else ():
        changed = pair.replaced(others, dim, slice(kept, kept + 1), feeds)
        given = pair.expected(changed, pair.sizes)
        apart = [index for index in apart if _is_same_sample(pair, index, dim, kept, before[index], given[index])]
    constant = [i for i in outputs if not pair.output_axes(i, dim) and _are_same(before[i], after[i])]
    return sorted({*apart, *constant})


def check_by_samples(pair: Pair, dim: str, sizes: Sequence[int], outputs: Sequence[int]) -> list[Judged]:
    """The dynamic file at several numbers of samples against the static file, group by group."""
    checker = checker_beside_twin(pair.with_samples(dim))
    runs = (checker.reference.run({**pair.sizes, dim: size}, number) for number, size in enumerate(sizes))
    return judge_until_wrong(checker, (replace(run, covered=outputs) for run in runs))


def _grows_by_samples(pair: Pair, index: int, dim: str) -> bool:
    """Whether one axis of an output is the dim, or a multiple of it."""
    axes = pair.output_axes(index, dim)
    if len(axes) != 1:
        return False
    own = pair.sizes[dim]
    once, thrice = (pair.output_size(index, axes[0], {**pair.sizes, dim: own * times}) for times in (1, 3))
    return once > 0 and once % own == 0 and thrice == 3 * once


def _is_same_sample(pair: Pair, index: int, dim: str, kept: int, before: Array, after: Array) -> bool:
    (axis,) = pair.output_axes(index, dim)
    each = before.shape[axis] // pair.sizes[dim]
    part = slice(kept * each, (kept + 1) * each)
    return _are_same(taken(before, [axis], part), taken(after, [axis], part))


def _are_same(before: Array, after: Array) -> bool:
    return are_close(after, before, lambda _: before)


_CONTROL_SHIFTS = (301, 302)
"""Contents that no check uses."""
_STRIDES = (32, 16, 8, 4, 2, 1)


@dataclass(frozen=True)
class _Reach:
    """Of one output, cut by a number of steps: how many places at each end feel the cut, and how far it is shifted."""

    axis: int
    places: int
    """Of the whole output along the axis."""
    shift: int
    """How many places the output loses."""
    end: int
    """Places before the new end that feel it."""
    start: int
    """Places after the new start that feel it."""

    @property
    def covers_all(self) -> bool:
        return self.end + self.start <= self.places - self.shift


def steps_of(size: int) -> list[int]:
    """By how much an input of this size is cut: multiples of a stride that most networks keep."""
    stride = next((one for one in _STRIDES if size % one == 0 and size // one >= budgets.FEWEST_STEPS_OF_A_SHIFT), None)
    if stride is None:
        return []
    most = size // stride - 2
    return [
        stride * times for times in sorted({1, (1 + most) // 2, most})[: budgets.MOST_STEPS_OF_A_SHIFT] if times > 0
    ]


def reaches(pair: Pair, dim: str, step: int, outputs: Sequence[int]) -> dict[int, _Reach]:
    """The outputs for which cutting by this many steps tells all, as control runs on the static file show it."""
    own = pair.sizes[dim]
    feeds, others = (pair.feeds(pair.sizes, number) for number in _CONTROL_SHIFTS)
    given = pair.expected(feeds, pair.sizes)
    ends = pair.expected(pair.replaced(feeds, dim, slice(own - step, None), others), pair.sizes)
    starts = pair.expected(pair.replaced(feeds, dim, slice(0, step), others), pair.sizes)
    rest = pair.cut(others, dim, slice(0, step))
    shifted = pair.expected(pair.joined(pair.cut(feeds, dim, slice(step, None)), rest, dim), pair.sizes)
    found = {}
    for index in outputs:
        reach = _reach_of_cut(pair, dim, step, index, given[index], ends[index], starts[index])
        if reach is not None and _is_shifted(reach, given[index], shifted[index]):
            found[index] = reach
    return found


def _reach_of_cut(
    pair: Pair, dim: str, step: int, index: int, given: Array, ends: Array, starts: Array
) -> _Reach | None:
    axes = pair.output_axes(index, dim)
    if len(axes) != 1:
        return None
    (axis,) = axes
    places = given.shape[axis]
    shift = places - pair.output_size(index, axis, {**pair.sizes, dim: pair.sizes[dim] - step})
    if not 0 < shift < places:
        return None
    at_end, at_start = _moved_places(given, ends, axis), _moved_places(given, starts, axis)
    end = places - shift - int(at_end[0]) if at_end.size else 0
    start = int(at_start[-1]) + 1 - shift if at_start.size else 0
    reach = _Reach(axis, places, shift, max(end, 0), max(start, 0))
    return reach if reach.covers_all else None


def _moved_places(before: Array, after: Array, axis: int) -> Array:
    """The places along an axis at which two outputs differ by more than rounding."""
    first, second = np.moveaxis(before, axis, 0), np.moveaxis(after, axis, 0)
    largest = np.abs(first[np.isfinite(first)]).max(initial=0) if first.dtype.kind == "f" else 0
    scale = np.full(1, largest, before.dtype)  # noise is measured by the whole output, not by one place

    def differs(place: int) -> bool:
        one, other = (np.append(side[place].ravel(), scale) for side in (first, second))
        return not are_close(other, one, lambda _: one)

    return np.array([place for place in range(first.shape[0]) if differs(place)], dtype=np.int64)


def _is_shifted(reach: _Reach, given: Array, shifted: Array) -> bool:
    """Whether the inside of the output moves with the input."""
    inside = slice(reach.start, reach.places - reach.shift - reach.end)
    if inside.stop <= inside.start:
        return False
    before = taken(given, [reach.axis], slice(inside.start + reach.shift, inside.stop + reach.shift))
    after = taken(shifted, [reach.axis], inside)
    return are_close(after, before, lambda _: before)


_Reaches = dict[int, _Reach]


def check_by_shifts(
    pair: Pair, dim: str, steps: Sequence[int], found: Sequence[_Reaches], larger: Sequence[int]
) -> list[Judged]:
    """The dynamic file on the first and on the last part of an input, and on a larger one."""
    checker = checker_beside_twin(pair)
    judged = judge_until_wrong(checker, _shorter_runs(pair, dim, list(zip(steps, found, strict=True))))
    for number, size in enumerate(larger, 2 * len(steps)):
        if judged and isinstance(judged[-1], Failure):
            break
        judged.append(_judge_larger(checker, _Shift(pair, dim, size - pair.sizes[dim], found[0], number)))
    return judged


def _shorter_runs(pair: Pair, dim: str, cases: Sequence[tuple[int, _Reaches]]) -> Iterator[TwinRun]:
    yield from (_Shift(pair, dim, *case, number).first_part() for number, case in enumerate(cases))
    yield from (_Shift(pair, dim, *case, number).last_part() for number, case in enumerate(cases, len(cases)))


@dataclass(frozen=True)
class _Shift:
    """A dim that is so many steps shorter or longer than in the static file."""

    pair: Pair
    dim: str
    step: int
    found: _Reaches
    number: int
    """Of the content."""

    def first_part(self) -> TwinRun:
        pair, dim, length = self.pair, self.dim, self.pair.sizes[self.dim] - self.step
        feeds = pair.feeds(pair.sizes, self.number)
        parts = self._parts_of_outputs({i: slice(0, one.places - one.shift - one.end) for i, one in self.found.items()})
        sizes, cut = {**pair.sizes, dim: length}, pair.cut(feeds, dim, slice(0, length))
        return TwinRun(sizes, cut, pair.sizes, feeds, parts, parts, list(self.found))

    def last_part(self) -> TwinRun:
        pair, dim = self.pair, self.dim
        feeds = pair.feeds(pair.sizes, self.number)
        there = self._parts_of_outputs({i: slice(one.shift + one.start, None) for i, one in self.found.items()})
        here = self._parts_of_outputs({i: slice(one.start, None) for i, one in self.found.items()})
        sizes, cut = {**pair.sizes, dim: pair.sizes[dim] - self.step}, pair.cut(feeds, dim, slice(self.step, None))
        return TwinRun(sizes, cut, pair.sizes, feeds, there, here, list(self.found))

    def both_ends(self) -> tuple[TwinRun, TwinRun]:
        """Of a larger output: its first part is that of the static file on the first part, and so the last."""
        pair, dim, own = self.pair, self.dim, self.pair.sizes[self.dim]
        sizes = {**pair.sizes, dim: own + self.step}
        feeds, covered = pair.feeds(sizes, self.number), list(self.found)
        first = self._parts_of_outputs({i: slice(0, one.places - one.end) for i, one in self.found.items()})
        there = self._parts_of_outputs({i: slice(one.start, None) for i, one in self.found.items()})
        grown = {i: pair.output_size(i, one.axis, sizes) - one.places for i, one in self.found.items()}
        here = self._parts_of_outputs({i: slice(grown[i] + one.start, None) for i, one in self.found.items()})
        head, tail = pair.cut(feeds, dim, slice(0, own)), pair.cut(feeds, dim, slice(self.step, None))
        return (
            TwinRun(sizes, feeds, pair.sizes, head, first, first, covered),
            TwinRun(sizes, feeds, pair.sizes, tail, there, here, covered),
        )

    def _parts_of_outputs(self, chosen: dict[int, slice]) -> Parts:
        found = self.found
        return [{found[i].axis: chosen[i]} if i in found else {} for i in range(len(whole(self.pair)))]


def _judge_larger(checker: Checker[TwinRun], shift: _Shift) -> Judged:
    """One run of the dynamic file, held to the static one at both of its ends."""
    first, last = shift.both_ends()
    results = checker.results(first)
    if isinstance(results, Failure):
        return results
    judged = checker.compare(first, results)
    return judged if isinstance(judged, Failure) else checker.compare(last, results)
