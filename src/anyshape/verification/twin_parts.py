"""Checking a batch without its model: the static file, sample by sample, says what any number of samples must give.

That holds where samples do not interact. A control run shows it: other values in all the other samples must leave a
sample's output as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anyshape.bench.closeness import are_close
from anyshape.results.verification import Check, Failure
from anyshape.runtime.session import Array
from anyshape.verification.static_twin import Pair, Region, compare, run_dynamic, taken, whole

_CONTROL_SAMPLES = (101, 102)
"""Contents that no check uses."""


def independent_outputs(pair: Pair, dim: str, outputs: Sequence[int]) -> list[int]:
    """The outputs in which each sample along the dim depends on itself alone, as control runs show it."""
    feeds, others = (pair.feeds(pair.sizes, number) for number in _CONTROL_SAMPLES)
    before, after = pair.expected(feeds, pair.sizes), pair.expected(others, pair.sizes)
    own = pair.sizes[dim]
    apart = [index for index in outputs if _grows_by_samples(pair, index, dim)]
    for kept in sorted({0, own // 2, own - 1}) if own > 1 else ():
        changed = pair.replaced(others, dim, slice(kept, kept + 1), feeds)
        given = pair.expected(changed, pair.sizes)
        apart = [index for index in apart if _is_same_sample(pair, index, dim, kept, before[index], given[index])]
    constant = [i for i in outputs if not pair.output_axes(i, dim) and _are_same(before[i], after[i])]
    return sorted({*apart, *constant})


def check_by_samples(pair: Pair, dim: str, sizes: Sequence[int], outputs: Sequence[int]) -> list[Check | Failure]:
    """The dynamic file at several numbers of samples against the static file, group by group."""
    found: list[Check | Failure] = []
    for number, size in enumerate(sizes):
        at = {**pair.sizes, dim: size}
        feeds = pair.feeds(at, number)
        actual = run_dynamic(pair, feeds, at)
        if isinstance(actual, Failure):
            return [*found, actual]
        reference = Region(feeds, at, whole(pair))
        found.append(compare(pair.with_samples(dim), reference, actual, whole(pair), at, outputs))
        if isinstance(found[-1], Failure):
            break
    return found


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
_FEWEST_STEPS = 4
_MOST_STEPS = 3


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
    stride = next((one for one in _STRIDES if size % one == 0 and size // one >= _FEWEST_STEPS), None)
    if stride is None:
        return []
    most = size // stride - 2
    return [stride * times for times in sorted({1, (1 + most) // 2, most})[:_MOST_STEPS] if times > 0]


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
        reach = _reach(pair, dim, step, index, given[index], ends[index], starts[index])
        if reach is not None and _is_shifted(reach, given[index], shifted[index]):
            found[index] = reach
    return found


def _reach(pair: Pair, dim: str, step: int, index: int, given: Array, ends: Array, starts: Array) -> _Reach | None:
    axes = pair.output_axes(index, dim)
    if len(axes) != 1:
        return None
    (axis,) = axes
    places = given.shape[axis]
    shift = places - pair.output_size(index, axis, {**pair.sizes, dim: pair.sizes[dim] - step})
    if not 0 < shift < places:
        return None
    at_end, at_start = _moved(given, ends, axis), _moved(given, starts, axis)
    end = places - shift - int(at_end[0]) if at_end.size else 0
    start = int(at_start[-1]) + 1 - shift if at_start.size else 0
    reach = _Reach(axis, places, shift, max(end, 0), max(start, 0))
    return reach if reach.covers_all else None


def _moved(before: Array, after: Array, axis: int) -> Array:
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


def check_by_shifts(
    pair: Pair, dim: str, steps: Sequence[int], found: Sequence[dict[int, _Reach]], larger: Sequence[int]
) -> list[Check | Failure]:
    """The dynamic file on the first and on the last part of an input, and on a larger one."""
    outcomes: list[Check | Failure] = []
    cases = [(_first_part, *case) for case in zip(steps, found, strict=True)]
    cases += [(_last_part, *case) for case in zip(steps, found, strict=True)]
    cases += [(_larger, size - pair.sizes[dim], found[0]) for size in larger]
    for number, (case, step, reach) in enumerate(cases):
        outcomes.append(case(pair, dim, step, reach, number))
        if isinstance(outcomes[-1], Failure):
            break
    return outcomes


_Reaches = dict[int, _Reach]


def _first_part(pair: Pair, dim: str, step: int, found: _Reaches, number: int) -> Check | Failure:
    feeds, length = pair.feeds(pair.sizes, number), pair.sizes[dim] - step
    sizes = {**pair.sizes, dim: length}
    actual = run_dynamic(pair, pair.cut(feeds, dim, slice(0, length)), sizes)
    if isinstance(actual, Failure):
        return actual
    parts = _parts(pair, {i: slice(0, one.places - one.shift - one.end) for i, one in found.items()}, found)
    return compare(pair, Region(feeds, pair.sizes, parts), actual, parts, sizes, list(found))


def _last_part(pair: Pair, dim: str, step: int, found: _Reaches, number: int) -> Check | Failure:
    feeds = pair.feeds(pair.sizes, number)
    sizes = {**pair.sizes, dim: pair.sizes[dim] - step}
    actual = run_dynamic(pair, pair.cut(feeds, dim, slice(step, None)), sizes)
    if isinstance(actual, Failure):
        return actual
    there = _parts(pair, {i: slice(one.shift + one.start, None) for i, one in found.items()}, found)
    here = _parts(pair, {i: slice(one.start, None) for i, one in found.items()}, found)
    return compare(pair, Region(feeds, pair.sizes, there), actual, here, sizes, list(found))


def _larger(pair: Pair, dim: str, step: int, found: _Reaches, number: int) -> Check | Failure:
    """Both ends of a larger output: its first part is that of the static file on the first part, and so the last."""
    own = pair.sizes[dim]
    sizes = {**pair.sizes, dim: own + step}
    feeds = pair.feeds(sizes, number)
    actual = run_dynamic(pair, feeds, sizes)
    if isinstance(actual, Failure):
        return actual
    first = _parts(pair, {i: slice(0, one.places - one.end) for i, one in found.items()}, found)
    reference = Region(pair.cut(feeds, dim, slice(0, own)), pair.sizes, first)
    outcome = compare(pair, reference, actual, first, sizes, list(found))
    if isinstance(outcome, Failure):
        return outcome
    there = _parts(pair, {i: slice(one.start, None) for i, one in found.items()}, found)
    grown = {i: pair.output_size(i, one.axis, sizes) - one.places for i, one in found.items()}
    here = _parts(pair, {i: slice(grown[i] + one.start, None) for i, one in found.items()}, found)
    reference = Region(pair.cut(feeds, dim, slice(step, None)), pair.sizes, there)
    return compare(pair, reference, actual, here, sizes, list(found))


def _parts(pair: Pair, chosen: dict[int, slice], found: _Reaches) -> list[dict[int, slice]]:
    return [{found[i].axis: chosen[i]} if i in found else {} for i in range(len(whole(pair)))]
