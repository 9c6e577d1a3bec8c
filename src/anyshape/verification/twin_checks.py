"""Checking a dim without its model: what the static file gives for a part must be a part of what the dynamic one gives.

Each check has the same shape. Control runs of the static file show for which outputs it holds; then both files are run,
and the regions of their outputs that must agree are compared. There are four:

- samples: any number of them, each as the static file gives it. That holds where samples do not interact: other values
  in all the others leave a sample's output as it is.
- prefixes: first steps alone give what they give in a longer sequence. That holds where later steps do not matter, in
  causal networks and where a mask hides them: other values there leave the outputs of the first steps as they are.
- repeats: places that are repeated give repeated results. That holds where neither order nor number of places matters.
- shifts: the first and the last part of an input give the ends of the output, up to the places that feel the cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from anyshape.results.verification import Check, Failure
from anyshape.runtime.made_up_inputs import is_mask
from anyshape.runtime.session import Array, Feeds
from anyshape.sizes import budgets
from anyshape.sizes.notation import Sizes
from anyshape.testbench.checker import Checker, Judged, judge_until_wrong
from anyshape.testbench.judgement import are_close
from anyshape.verification.static_twin import Pair, Region, Regions, TwinRun, checker_beside_twin, cut_out, whole

# ---- what the dynamic file shows without values to compare


def misplaced_batch(pair: Pair) -> Failure | None:
    """A batch that went into another axis while its own stayed a number: consistent in itself, but nobody means it."""
    for dim, own in pair.sizes.items():
        if any(0 not in pair.axes(name, dim) for name in pair.wanted if pair.axes(name, dim)):
            continue
        for index, port in enumerate(pair.interface.outputs):
            axes = pair.output_axes(index, dim)
            if axes and 0 not in axes and port.axes and port.axes[0] == own:
                sentence = f"`{port.name}` has {own} on axis 0, and `{dim}` went into `{port.axes[axes[0]]}`"
                return Failure(dict(pair.sizes), 0, "wrong-shape", port.name, sentence)
    return None


def run_only(pair: Pair, dim: str, sizes: Sequence[int]) -> list[Judged]:
    """Where no values can be compared, the file must at least run, and keep the shapes that it declares."""
    found: list[Judged] = []
    checker = checker_beside_twin(pair)
    for number, size in enumerate(sizes):
        at = {**pair.sizes, dim: size}
        outcome = checker.results(checker.reference.run(at, number))
        found.append(outcome if isinstance(outcome, Failure) else Check(at, 0, 0.0))
        # only where the dim has grown: what an unrolled loop does not look at lies behind its own length
        if size > pair.sizes[dim] and isinstance(found[-1], Check):
            found += _unfelt_half(pair, dim, at)
    return found


def _unfelt_half(pair: Pair, dim: str, sizes: Sizes) -> Iterator[Failure]:
    """Places that change nothing, though they do in the static file: an unrolled loop looks at its own length alone."""
    if _is_felt(pair, pair.run_static, dim, pair.sizes) and not _is_felt(pair, pair.run_dynamic, dim, sizes):
        sentence = f"ignores the second half of {sizes[dim]} places along `{dim}`, which matters in the static file"
        yield Failure(dict(sizes), 0, "wrong-values", None, sentence)


def _is_felt(pair: Pair, run: Callable[[Feeds], list[Array]], dim: str, sizes: Sizes) -> bool:
    """Whether an output depends on the second half of a dim; on the last place alone does not count."""
    feeds, others = (pair.feeds(sizes, number) for number in (401, 402))
    # a mask that hides a place would hide the difference
    masks = [port.name for port in pair.contents.ports if is_mask(port.name, port.dtype)]
    shown = {name: np.ones_like(feeds[name]) for name in masks}
    feeds, others = {**feeds, **shown}, {**others, **shown}
    changed = pair.replaced(feeds, dim, slice(sizes[dim] // 2, sizes[dim] - 1), others)
    return any(not np.array_equal(a, b) for a, b in zip(run(feeds), run(changed), strict=True))


_CONTROL_SAMPLES = (101, 102)
_CONTROL_PREFIXES = (201, 202)
_CONTROL_SHIFTS = (301, 302)
_CONTROL_REPEATS = 501
"""Contents that no check uses."""


def _agree(before: Array, after: Array, there: Region, here: Region) -> bool:
    """Whether a region of an output is the same as one of another run of the static file."""
    expected = cut_out(before, there)
    return are_close(cut_out(after, here), expected, lambda _: expected)


def _with_other_samples(pair: Pair, dim: str, sizes: Sequence[int]) -> Iterator[tuple[int, Sizes]]:
    """Numbered, these sizes of a dim; other samples at every second."""
    for number, size in enumerate(sizes):
        samples = {one: 2 * pair.sizes[one] + 1 for one in pair.samples} if number % 2 else {}
        yield number, {**pair.sizes, **samples, dim: size}


# ---- samples


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
    if own > 1 and apart:  # a place of its own gives no sample its result, as a table of places would
        moved = pair.expected(pair.turned(feeds, dim), pair.sizes)
        apart = [index for index in apart if _is_turned(pair, index, dim, before[index], moved[index])]
    constant = [i for i in outputs if not pair.output_axes(i, dim) and _agree(before[i], after[i], {}, {})]
    return sorted({*apart, *constant})


def check_by_samples(pair: Pair, dim: str, sizes: Sequence[int], outputs: Sequence[int]) -> list[Judged]:
    """The dynamic file at several numbers of samples against the static file, group by group."""
    checker = checker_beside_twin(pair.with_samples(dim))
    runs = (checker.reference.run({**pair.sizes, dim: size}, number) for number, size in enumerate(sizes))
    return judge_until_wrong(checker, (run.over(outputs) for run in runs))


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
    part = {axis: slice(kept * each, (kept + 1) * each)}
    return _agree(before, after, part, part)


def _is_turned(pair: Pair, index: int, dim: str, before: Array, after: Array) -> bool:
    (axis,) = pair.output_axes(index, dim)
    return _agree(np.roll(before, before.shape[axis] // pair.sizes[dim], axis), after, {}, {})


# ---- prefixes


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
        before, after = pair.expected(first, pair.sizes), pair.expected(second, pair.sizes)
        steps = _first_steps(pair, dim, length, kept)
        kept = [index for index, region in steps.items() if _is_unmoved(before[index], after[index], region)]
        if not kept:
            break
    return kept


def _is_unmoved(before: Array, after: Array, region: Region) -> bool:
    """Whether there is something to see, and it is the same."""
    return all(cut_out(before, region).shape[axis] for axis in region) and _agree(before, after, region, region)


def _first_steps(pair: Pair, dim: str, length: int, outputs: Sequence[int]) -> Regions:
    """Of each output, what a sequence of this length gives; every axis that follows the dim is cut."""
    sizes = {**pair.sizes, dim: length}
    return {
        index: {axis: slice(0, pair.output_size(index, axis, sizes)) for axis in pair.output_axes(index, dim)}
        for index in outputs
    }


def check_by_prefixes(
    pair: Pair, dim: str, hiding: Hiding, lengths: Sequence[int], outputs: Sequence[int]
) -> list[Judged]:
    """The dynamic file at several lengths, shorter and longer than the static file's; other samples at every second."""
    cases = _with_other_samples(pair, dim, lengths)
    runs = (_prefix_run(pair, dim, hiding, sizes, number, outputs) for number, sizes in cases)
    return judge_until_wrong(checker_beside_twin(pair), runs)


def _prefix_run(pair: Pair, dim: str, hiding: Hiding, sizes: Sizes, number: int, outputs: Sequence[int]) -> TwinRun:
    """The file with the longer sequence, its later steps hidden, against the other one on the first steps alone."""
    own, length = pair.sizes[dim], sizes[dim]
    few, static_sizes = min(own, length), {**sizes, dim: own}
    longer = pair.feeds({**sizes, dim: max(own, length)}, number)
    longer = hiding.applied(pair, longer, dim, slice(few, None))
    shorter = pair.cut(longer, dim, slice(0, few))
    first, everything = _first_steps(pair, dim, few, outputs), whole(outputs)
    if length <= own:
        return TwinRun(sizes, shorter, static_sizes, longer, first, everything)
    return TwinRun(sizes, longer, static_sizes, shorter, everything, first)


# ---- repeats

_TIMES = (1, 3, 5)


def periods_of(size: int) -> list[int]:
    """How many different places are repeated: divisors of the size, the largest first."""
    return [period for period in range(size // 2, 1, -1) if size % period == 0][: budgets.MOST_PERIODS_REPEATED]


def sizes_for(size: int) -> list[int]:
    """Sizes that can be made of the static file's periods."""
    return list(dict.fromkeys(period * times for times in _TIMES for period in periods_of(size)))


def repeatable_outputs(pair: Pair, dim: str, outputs: Sequence[int]) -> list[int]:
    """The outputs for which neither the order of the places nor the copy matters, as control runs show it."""
    kept = [index for index in outputs if _follows_dim(pair, dim, index)]
    for period in periods_of(pair.sizes[dim]):
        once = pair.feeds({**pair.sizes, dim: period}, _CONTROL_REPEATS)
        times = pair.sizes[dim] // period
        tiled, grouped = (
            pair.expected(_repeated_places(pair, once, dim, times, in_groups=way), pair.sizes) for way in (False, True)
        )
        places = [place % period * times + place // period for place in range(period * times)]
        kept = [i for i in kept if _is_repeatable(pair.output_axes(i, dim), tiled[i], grouped[i], places, period)]
    return kept


def _follows_dim(pair: Pair, dim: str, index: int) -> bool:
    """Whether an output has the dim itself on one axis, or on none."""
    axes = pair.output_axes(index, dim)
    sizes = [pair.output_size(index, axis, {**pair.sizes, dim: 5}) for axis in axes]
    return len(axes) <= 1 and all(size == 5 for size in sizes)


def _is_repeatable(axes: Sequence[int], tiled: Array, grouped: Array, places: list[int], period: int) -> bool:
    for axis in axes:
        grouped = np.take(grouped, places, axis)
        if not _agree(tiled, tiled, {axis: slice(0, period)}, {axis: slice(period, 2 * period)}):
            return False
    return _agree(tiled, grouped, {}, {})


def _repeated_places(pair: Pair, feeds: Feeds, dim: str, times: int, *, in_groups: bool) -> Feeds:
    """`a b` becomes `a b a b`, in groups `a a b b`."""
    made = dict(feeds)
    for name in feeds:
        for axis in pair.axes(name, dim):
            value = made[name]
            made[name] = np.repeat(value, times, axis) if in_groups else np.concatenate([value] * times, axis)
    return made


def check_by_repeats(pair: Pair, dim: str, sizes: Sequence[int], outputs: Sequence[int]) -> list[Judged]:
    """The dynamic file on repeated places at these sizes; other samples at every second."""
    return judge_until_wrong(checker_beside_twin(pair), _repeated_runs(pair, dim, sizes, outputs))


def _repeated_runs(pair: Pair, dim: str, lengths: Sequence[int], outputs: Sequence[int]) -> Iterator[TwinRun]:
    own, axes = pair.sizes[dim], {index: pair.output_axes(index, dim) for index in outputs}
    for number, sizes in _with_other_samples(pair, dim, lengths):
        period = next((one for one in periods_of(own) if sizes[dim] % one == 0), None)
        if period is None:
            continue
        once, times = pair.feeds({**sizes, dim: period}, number), sizes[dim] // period
        grouped = _repeated_places(pair, once, dim, times, in_groups=True)  # a file that looks at a part misses some
        tiled = _repeated_places(pair, once, dim, own // period, in_groups=False)
        there = {index: dict.fromkeys(axes[index], slice(0, period)) for index in outputs}
        here = {index: dict.fromkeys(axes[index], slice(0, None, times)) for index in outputs}
        yield TwinRun(sizes, grouped, {**sizes, dim: own}, tiled, there, here)


# ---- shifts

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

    def head(self, lost: int) -> Region:
        """Up to an end that comes so many places earlier, without those that feel it."""
        return {self.axis: slice(0, self.places - lost - self.end)}

    def tail(self, skipped: int) -> Region:
        """From a start that comes so many places later, without those that feel it."""
        return {self.axis: slice(skipped + self.start, None)}


_Reaches = dict[int, _Reach]


def steps_of(size: int) -> list[int]:
    """By how much an input of this size is cut: multiples of a stride that most networks keep."""
    stride = next((one for one in _STRIDES if size % one == 0 and size // one >= budgets.FEWEST_STEPS_OF_A_SHIFT), None)
    if stride is None:
        return []
    most = size // stride - 2
    chosen = sorted({1, (1 + most) // 2, most})[: budgets.MOST_STEPS_OF_A_SHIFT]
    return [stride * times for times in chosen if times > 0]


def reaches(pair: Pair, dim: str, step: int, outputs: Sequence[int]) -> _Reaches:
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
    end = places - shift - at_end[0] if at_end else 0
    start = at_start[-1] + 1 - shift if at_start else 0
    reach = _Reach(axis, places, shift, max(end, 0), max(start, 0))
    return reach if reach.covers_all else None


def _moved_places(before: Array, after: Array, axis: int) -> list[int]:
    """The places along an axis at which two outputs differ by more than rounding."""
    first, second = np.moveaxis(before, axis, 0), np.moveaxis(after, axis, 0)
    largest = np.abs(first[np.isfinite(first)]).max(initial=0) if first.dtype.kind == "f" else 0
    scale = np.full(1, largest, before.dtype)  # noise is measured by the whole output, not by one place

    def differs(place: int) -> bool:
        one, other = (np.append(side[place].ravel(), scale) for side in (first, second))
        return not _agree(one, other, {}, {})

    return [place for place in range(first.shape[0]) if differs(place)]


def _is_shifted(reach: _Reach, given: Array, shifted: Array) -> bool:
    """Whether the inside of the output moves with the input."""
    inside = slice(reach.start, reach.places - reach.shift - reach.end)
    before = slice(inside.start + reach.shift, inside.stop + reach.shift)
    return inside.stop > inside.start and _agree(given, shifted, {reach.axis: before}, {reach.axis: inside})


def check_by_shifts(
    pair: Pair, dim: str, steps: Sequence[int], found: Sequence[_Reaches], larger: Sequence[int]
) -> list[Judged]:
    """The dynamic file on the first and on the last part of an input, and on a larger one."""
    checker = checker_beside_twin(pair)
    judged = judge_until_wrong(checker, _shorter_runs(pair, dim, list(zip(steps, found, strict=True))))
    for number, size in enumerate(larger, 2 * len(steps)):
        if judged and isinstance(judged[-1], Failure):
            break
        judged.append(_judge_larger(checker, pair, dim, size, found[0], number))
    return judged


def _shorter_runs(pair: Pair, dim: str, cases: Sequence[tuple[int, _Reaches]]) -> Iterator[TwinRun]:
    """All first parts, then all last parts, each against the static file on the whole."""
    own = pair.sizes[dim]
    for number, (step, found) in enumerate((*cases, *cases)):
        feeds, sizes = pair.feeds(pair.sizes, number), {**pair.sizes, dim: own - step}
        if number < len(cases):
            part, there = slice(0, own - step), {index: one.head(one.shift) for index, one in found.items()}
            here = there
        else:
            part, there = slice(step, None), {index: one.tail(one.shift) for index, one in found.items()}
            here = {index: one.tail(0) for index, one in found.items()}
        yield TwinRun(sizes, pair.cut(feeds, dim, part), pair.sizes, feeds, there, here)


def _judge_larger(checker: Checker[TwinRun], pair: Pair, dim: str, size: int, found: _Reaches, number: int) -> Judged:
    """One run of the dynamic file, held to the static one on the first and on the last part of the input."""
    own, sizes = pair.sizes[dim], {**pair.sizes, dim: size}
    feeds = pair.feeds(sizes, number)
    head, tail = (pair.cut(feeds, dim, part) for part in (slice(0, own), slice(size - own, None)))
    heads, there = {i: one.head(0) for i, one in found.items()}, {i: one.tail(0) for i, one in found.items()}
    here = {i: one.tail(pair.output_size(i, one.axis, sizes) - one.places) for i, one in found.items()}
    first = TwinRun(sizes, feeds, pair.sizes, head, heads, heads)
    results = checker.results(first)
    if isinstance(results, Failure):
        return results
    judged = checker.compare(first, results)
    if isinstance(judged, Failure):
        return judged
    return checker.compare(TwinRun(sizes, feeds, pair.sizes, tail, there, here), results)
