"""Checking a sequence whose order does not matter, without its model: places that are repeated change nothing.

Attention without positions, and means and maxima over places, give for `a b a b a b` what they give for `a b`. So the
static file on a repeated input says what the dynamic file must give on it once, or repeated another number of times.
Control runs show that neither order nor the copy matters. A sum passes them and is still another one for fewer places:
where the values differ, this check says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from anyshape.bench.closeness import Array, Feeds, are_close
from anyshape.results.verification import Check, Failure
from anyshape.verification.static_twin import Pair, Region, Sizes, compare, run_dynamic, taken, whole

_CONTROL = 501
"""A content that no check uses."""
_MOST_PERIODS = 3
_TIMES = (1, 3, 5)


def periods_of(size: int) -> list[int]:
    """How many different places are repeated: divisors of the size, the largest first."""
    return [period for period in range(size // 2, 1, -1) if size % period == 0][:_MOST_PERIODS]


def repeatable_outputs(pair: Pair, dim: str, outputs: Sequence[int]) -> list[int]:
    """The outputs for which neither the order of the places nor the copy matters, as control runs show it."""
    kept = [index for index in outputs if _follows(pair, dim, index)]
    for period in periods_of(pair.sizes[dim]):
        once = pair.feeds({**pair.sizes, dim: period}, _CONTROL)
        times = pair.sizes[dim] // period
        tiled = pair.expected(_tiled(pair, once, dim, times), pair.sizes)
        grouped = pair.expected(_grouped(pair, once, dim, times), pair.sizes)
        places = [place % period * times + place // period for place in range(period * times)]
        kept = [i for i in kept if _is_same(pair, dim, i, tiled[i], grouped[i], places, period)]
    return kept


def _follows(pair: Pair, dim: str, index: int) -> bool:
    """Whether an output has the dim itself on one axis, or on none."""
    axes = pair.output_axes(index, dim)
    sizes = [pair.output_size(index, axis, {**pair.sizes, dim: 5}) for axis in axes]
    return len(axes) <= 1 and all(size == 5 for size in sizes)


def _is_same(pair: Pair, dim: str, index: int, tiled: Array, grouped: Array, places: list[int], period: int) -> bool:
    for axis in pair.output_axes(index, dim):
        grouped = np.take(grouped, places, axis)
        first, second = (taken(tiled, [axis], slice(start, start + period)) for start in (0, period))
        if not are_close(second, first, lambda _, first=first: first):  # type: ignore[misc]
            return False
    return are_close(grouped, tiled, lambda _: tiled)


def _tiled(pair: Pair, feeds: Feeds, dim: str, times: int) -> Feeds:
    """`a b` becomes `a b a b`."""

    def change(value: Array, axis: int) -> Array:
        return np.concatenate([value] * times, axis)

    return {name: _along(value, pair.axes(name, dim), change) for name, value in feeds.items()}


def _grouped(pair: Pair, feeds: Feeds, dim: str, times: int) -> Feeds:
    """`a b` becomes `a a b b`."""

    def change(value: Array, axis: int) -> Array:
        return np.repeat(value, times, axis)

    return {name: _along(value, pair.axes(name, dim), change) for name, value in feeds.items()}


def _along(value: Array, axes: Sequence[int], change: Callable[[Array, int], Array]) -> Array:
    for axis in axes:
        value = change(value, axis)
    return value


def check_by_repeats(pair: Pair, dim: str, sizes: Sequence[int], outputs: Sequence[int]) -> list[Check | Failure]:
    """The dynamic file on repeated places at these sizes; other samples at every second."""
    found: list[Check | Failure] = []
    periods = periods_of(pair.sizes[dim])
    for number, size in enumerate(sizes):
        period = next((one for one in periods if size % one == 0), None)
        if period is None:
            continue
        samples = {one: 2 * pair.sizes[one] + 1 for one in pair.samples} if number % 2 else {}
        found.append(_repeated(pair, dim, {**pair.sizes, **samples, dim: size}, period, number, outputs))
        if isinstance(found[-1], Failure):
            break
    return found


def sizes_for(size: int) -> list[int]:
    """Sizes that can be made of the static file's periods."""
    return list(dict.fromkeys(period * times for times in _TIMES for period in periods_of(size)))


def _repeated(pair: Pair, dim: str, sizes: Sizes, period: int, number: int, outputs: Sequence[int]) -> Check | Failure:
    once, times = pair.feeds({**sizes, dim: period}, number), sizes[dim] // period
    actual = run_dynamic(pair, _grouped(pair, once, dim, times), sizes)  # a file that looks at a part misses some
    if isinstance(actual, Failure):
        return actual
    own, every = pair.sizes[dim], range(len(whole(pair)))
    there = [{axis: slice(0, period) for axis in pair.output_axes(index, dim)} for index in every]
    here = [{axis: slice(0, None, times) for axis in pair.output_axes(index, dim)} for index in every]
    reference = Region(_tiled(pair, once, dim, own // period), {**sizes, dim: own}, there)
    return compare(pair, reference, actual, here, sizes, outputs)
