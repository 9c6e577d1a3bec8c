"""Checking a batch without its model: the static file, sample by sample, says what any number of samples must give.

That holds where samples do not interact. A control run shows it: other values in all the other samples must leave a
sample's output as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from anyshape.bench.closeness import Array, are_close
from anyshape.results.verification import Check, Failure
from anyshape.verification.static_twin import Pair, Region, compare, run_dynamic, taken, whole

_CONTROL = (101, 102)
"""Contents that no check uses."""


def independent_outputs(pair: Pair, dim: str, outputs: Sequence[int]) -> list[int]:
    """The outputs in which each sample along the dim depends on itself alone, as control runs show it."""
    feeds, others = (pair.feeds(pair.sizes, number) for number in _CONTROL)
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
