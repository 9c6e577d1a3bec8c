"""Checking a sequence without its model: first steps alone must give what they give in the static file's sequence.

That holds where later steps do not matter: in causal networks, and where a mask hides them. A control run shows it:
other values after the first steps must leave their outputs as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from anyshape.bench.batches import taken
from anyshape.bench.bench import Judged, judge_until_wrong
from anyshape.bench.judgement import are_close
from anyshape.runtime.made_up_inputs import is_mask
from anyshape.runtime.session import Array, Feeds
from anyshape.sizes import budgets
from anyshape.sizes.notation import Sizes
from anyshape.verification.static_twin import Pair, TwinRun, checker_beside_twin, whole

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
