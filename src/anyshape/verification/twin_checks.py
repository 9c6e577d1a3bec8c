"""Checking a batch without its model: the static file, sample by sample, says what any number of samples must give.

That holds where samples do not interact. A control run shows it: other values in all the other samples must leave a
sample's output as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from anyshape.bench.batches import taken
from anyshape.bench.bench import Checker, Judged, judge_until_wrong
from anyshape.bench.judgement import are_close
from anyshape.results.verification import Failure
from anyshape.runtime.made_up_inputs import is_mask
from anyshape.runtime.session import Array, Feeds
from anyshape.sizes import budgets
from anyshape.sizes.notation import Sizes
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


_CONTROL_PREFIXES = (201, 202)
"""Contents that no check uses."""


@dataclass(frozen=True)
class Hiding:
    """What makes later steps not matter: nothing (a causal network), or a mask that is set to a value there."""

    mask: str | None = None
    value: int = 0

    def __str__(self) -> str:
        return "prefixes" if self.mask is None else f"prefixes, the rest hidden by `{self.mask}` = {self.value}"

    def applied(self, pair: Pair, feeds: Feeds, dim: str, part: slice) -> Feeds:
        if self.mask is None:
            return feeds
        hidden = feeds[self.mask].copy()
        (axis,) = pair.axes(self.mask, dim)
        hidden[(slice(None),) * axis + (part,)] = self.value
        return {**feeds, self.mask: hidden}


def hidings(pair: Pair, dim: str) -> list[Hiding]:
    """What may hide later steps, the simplest first; masks are 0 there, or 1 where they mark padding."""
    along = [port for port in pair.contents.ports if len(pair.axes(port.name, dim)) == 1]
    masks = [port.name for port in along if is_mask(port.name, port.dtype)]
    return [Hiding(), *(Hiding(name, value) for name in masks for value in (0, 1))]


def hidden_outputs(pair: Pair, dim: str, hiding: Hiding, lengths: Sequence[int], outputs: Sequence[int]) -> list[int]:
    """The outputs whose first steps do not depend on what comes later, as control runs show it at each length."""
    feeds, others = (pair.feeds(pair.sizes, number) for number in _CONTROL_PREFIXES)
    kept = list(outputs)
    for length in lengths:
        rest = slice(length, None)
        first = hiding.applied(pair, feeds, dim, rest)
        second = hiding.applied(pair, pair.replaced(feeds, dim, rest, others), dim, rest)
        parts = first_steps(pair, dim, length)
        before, after = pair.expected(first, pair.sizes), pair.expected(second, pair.sizes)
        kept = [index for index in kept if _is_unmoved(before[index], after[index], parts[index])]
        if not kept:
            break
    return kept


def _is_unmoved(before: Array, after: Array, parts: Mapping[int, slice]) -> bool:
    for axis, part in parts.items():
        before, after = taken(before, [axis], part), taken(after, [axis], part)
        if not before.shape[axis]:
            return False  # nothing to see
    return are_close(after, before, lambda _: before)


def first_steps(pair: Pair, dim: str, length: int) -> list[dict[int, slice]]:
    """Of each output, what a sequence of this length gives; every axis that follows the dim is cut."""
    sizes = {**pair.sizes, dim: length}
    return [
        {axis: slice(0, pair.output_size(index, axis, sizes)) for axis in pair.output_axes(index, dim)}
        for index in range(len(pair.interface.outputs))
    ]


def check_by_prefixes(
    pair: Pair, dim: str, hiding: Hiding, lengths: Sequence[int], outputs: Sequence[int]
) -> list[Judged]:
    """The dynamic file at several lengths, shorter and longer than the static file's; other samples at every second."""

    def runs() -> Iterator[TwinRun]:
        for number, length in enumerate(lengths):
            sizes = {**pair.sizes, **_other_samples(pair, number), dim: length}
            make = _shorter_run if length <= pair.sizes[dim] else _longer_run
            yield make(pair, dim, hiding, sizes, number, outputs)

    return judge_until_wrong(checker_beside_twin(pair), runs())


def _other_samples(pair: Pair, number: int) -> dict[str, int]:
    return {one: 2 * pair.sizes[one] + 1 for one in pair.samples} if number % 2 else {}


def _shorter_run(pair: Pair, dim: str, hiding: Hiding, sizes: Sizes, number: int, outputs: Sequence[int]) -> TwinRun:
    """The first steps of the static file against the dynamic file on these steps alone."""
    length, full = sizes[dim], {**sizes, dim: pair.sizes[dim]}
    feeds = hiding.applied(pair, pair.feeds(full, number), dim, slice(length, None))
    cut = pair.cut(feeds, dim, slice(0, length))
    return TwinRun(sizes, cut, full, feeds, first_steps(pair, dim, length), whole(pair), outputs)


def _longer_run(pair: Pair, dim: str, hiding: Hiding, sizes: Sizes, number: int, outputs: Sequence[int]) -> TwinRun:
    """The first steps of the dynamic file on a longer sequence against the static file on these steps alone."""
    own, feeds = pair.sizes[dim], pair.feeds(sizes, number)
    hidden, cut = hiding.applied(pair, feeds, dim, slice(own, None)), pair.cut(feeds, dim, slice(0, own))
    return TwinRun(sizes, hidden, {**sizes, dim: own}, cut, whole(pair), first_steps(pair, dim, own), outputs)


_CONTROL_REPEATS = 501
"""A content that no check uses."""
_TIMES = (1, 3, 5)


def periods_of(size: int) -> list[int]:
    """How many different places are repeated: divisors of the size, the largest first."""
    return [period for period in range(size // 2, 1, -1) if size % period == 0][: budgets.MOST_PERIODS_REPEATED]


def repeatable_outputs(pair: Pair, dim: str, outputs: Sequence[int]) -> list[int]:
    """The outputs for which neither the order of the places nor the copy matters, as control runs show it."""
    kept = [index for index in outputs if _follows_dim(pair, dim, index)]
    for period in periods_of(pair.sizes[dim]):
        once = pair.feeds({**pair.sizes, dim: period}, _CONTROL_REPEATS)
        times = pair.sizes[dim] // period
        tiled = pair.expected(_tiled_places(pair, once, dim, times), pair.sizes)
        grouped = pair.expected(_grouped_places(pair, once, dim, times), pair.sizes)
        places = [place % period * times + place // period for place in range(period * times)]
        kept = [i for i in kept if _is_repeatable(pair, dim, i, tiled[i], grouped[i], places, period)]
    return kept


def _follows_dim(pair: Pair, dim: str, index: int) -> bool:
    """Whether an output has the dim itself on one axis, or on none."""
    axes = pair.output_axes(index, dim)
    sizes = [pair.output_size(index, axis, {**pair.sizes, dim: 5}) for axis in axes]
    return len(axes) <= 1 and all(size == 5 for size in sizes)


def _is_repeatable(
    pair: Pair, dim: str, index: int, tiled: Array, grouped: Array, places: list[int], period: int
) -> bool:
    for axis in pair.output_axes(index, dim):
        grouped = np.take(grouped, places, axis)
        first, second = (taken(tiled, [axis], slice(start, start + period)) for start in (0, period))
        if not are_close(second, first, lambda _, first=first: first):  # type: ignore[misc]
            return False
    return are_close(grouped, tiled, lambda _: tiled)


def _tiled_places(pair: Pair, feeds: Feeds, dim: str, times: int) -> Feeds:
    """`a b` becomes `a b a b`."""

    def change(value: Array, axis: int) -> Array:
        return np.concatenate([value] * times, axis)

    return {name: _changed_along(value, pair.axes(name, dim), change) for name, value in feeds.items()}


def _grouped_places(pair: Pair, feeds: Feeds, dim: str, times: int) -> Feeds:
    """`a b` becomes `a a b b`."""

    def change(value: Array, axis: int) -> Array:
        return np.repeat(value, times, axis)

    return {name: _changed_along(value, pair.axes(name, dim), change) for name, value in feeds.items()}


def _changed_along(value: Array, axes: Sequence[int], change: Callable[[Array, int], Array]) -> Array:
    for axis in axes:
        value = change(value, axis)
    return value


def check_by_repeats(pair: Pair, dim: str, sizes: Sequence[int], outputs: Sequence[int]) -> list[Judged]:
    """The dynamic file on repeated places at these sizes; other samples at every second."""

    def runs() -> Iterator[TwinRun]:
        for number, size in enumerate(sizes):
            period = next((one for one in periods_of(pair.sizes[dim]) if size % one == 0), None)
            if period is not None:
                at = {**pair.sizes, **_other_samples(pair, number), dim: size}
                yield _repeated_run(pair, dim, at, period, number, outputs)

    return judge_until_wrong(checker_beside_twin(pair), runs())


def sizes_for(size: int) -> list[int]:
    """Sizes that can be made of the static file's periods."""
    return list(dict.fromkeys(period * times for times in _TIMES for period in periods_of(size)))


def _repeated_run(pair: Pair, dim: str, sizes: Sizes, period: int, number: int, outputs: Sequence[int]) -> TwinRun:
    once, times = pair.feeds({**sizes, dim: period}, number), sizes[dim] // period
    own, every = pair.sizes[dim], range(len(whole(pair)))
    there = [{axis: slice(0, period) for axis in pair.output_axes(index, dim)} for index in every]
    here = [{axis: slice(0, None, times) for axis in pair.output_axes(index, dim)} for index in every]
    grouped = _grouped_places(pair, once, dim, times)  # a file that looks at a part misses some
    return TwinRun(
        sizes, grouped, {**sizes, dim: own}, _tiled_places(pair, once, dim, own // period), there, here, outputs
    )
