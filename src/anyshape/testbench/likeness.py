"""Elements of one output that are alike in magnitude, and the rounding noise that they tell of each other.

Magnitudes are counted in octaves, a factor of two each. Noise is lent from octave to octave, and not beyond a gap of
several empty ones, so that a mask of -1e9 never lends its rounding to the scores beside it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from anyshape.runtime.session import Array
from anyshape.sizes import budgets

_LOWEST = -1100
"""Below the octave of any float64; of a zero, which has none."""


_GAP = 4
"""Octaves from one element to the next that are alike: the few smallest of many lie that far apart by chance."""
_STRAYS = 1 / 64
"""Of the elements, so few may lie further below."""
_WIDEST_GAP_OF_STRAYS = 12
"""So far: the smallest of thousands."""


def octaves_of(values: Array) -> Array:
    """The exponent of each element's magnitude; zero has the lowest."""
    # in 16 bits, which numpy sorts without comparing
    return np.where(values == 0, _LOWEST, np.frexp(values)[1]).astype(np.int16)


def _present(octaves: Array) -> Array:
    """Each octave that there is, in order."""
    return np.flatnonzero(_counts_in(octaves)) + _LOWEST


def _counts_in(octaves: Array) -> Array:
    """How many elements each octave has, from the lowest on."""
    counts = np.zeros(-2 * _LOWEST, np.int64)
    for start in range(0, octaves.size, budgets.ELEMENTS_OF_A_BLOCK):  # which are counted as 64 bits each
        block = octaves[start : start + budgets.ELEMENTS_OF_A_BLOCK]
        counts += np.bincount(block - np.int16(_LOWEST), minlength=counts.size)
    return counts


def lent_noise(values: Array, noise: Array) -> Array:
    """For each element what is usual among those of like magnitude: a few of them that jump are not."""
    return in_octaves_of(values, usual_by_octave(values, noise))


def usual_by_octave(values: Array, noise: Array) -> dict[int, float]:
    return {octave: _usual(alike) for octave, alike in _neighbourhoods(octaves_of(values), noise)}


def in_octaves_of(values: Array, by_octave: Mapping[int, float]) -> Array:
    """For each element the number of its octave."""
    return _looked_up(by_octave, octaves_of(values))


def _looked_up(by_octave: Mapping[int, float], octaves: Array) -> Array:
    """The number of each element's octave; 0 where there is none."""
    numbers = np.zeros(-2 * _LOWEST)
    for octave, number in by_octave.items():
        numbers[octave - _LOWEST] = number
    return np.asarray(numbers[octaves - np.int16(_LOWEST)])


def _by_octave(octaves: Array, noise: Array) -> tuple[Array, list[Array]]:
    """Each octave that there is, and the noise of its elements.

    Block by block: an order of all of them would be another eight bytes for each of millions of elements.
    """
    counts = _counts_in(octaves)
    present = np.flatnonzero(counts) + _LOWEST
    ordered = np.empty(noise.size, noise.dtype)
    parts = np.split(ordered, np.cumsum(counts[present - _LOWEST])[:-1])
    filled = [0] * len(parts)
    for start in range(0, octaves.size, budgets.ELEMENTS_OF_A_BLOCK):
        block = slice(start, start + budgets.ELEMENTS_OF_A_BLOCK)
        order = octaves[block].argsort(kind="stable")
        ends = np.searchsorted(octaves[block][order], present, side="right")
        for place, more in enumerate(np.split(noise[block][order], ends[:-1])):
            parts[place][filled[place] : filled[place] + more.size] = more
            filled[place] += more.size
    return present, parts


def _neighbourhoods(octaves: Array, noise: Array) -> Iterator[tuple[int, Array]]:
    """Each octave, with the noise of its elements and, where these are few, of those in the next ones."""
    present, parts = _by_octave(octaves, noise)
    for place, octave in enumerate(present.tolist()):
        if octave == _LOWEST:
            continue
        # thousands tell no more than a part of them, spread over all
        chosen = [(own := parts[place])[:: max(1, own.size // budgets.ENOUGH_ALIKE_TO_TELL)]]
        low, high = place, place
        while sum(part.size for part in chosen) < budgets.FEW_ALIKE:
            down = present[low] - present[low - 1] if low > 0 else _LOWEST * -1
            up = present[high + 1] - present[high] if high + 1 < len(present) else _LOWEST * -1
            if min(down, up) > _GAP:
                break
            low, high = (low - 1, high) if down < up else (low, high + 1)
            chosen.append(parts[low] if down < up else parts[high])
        yield octave, np.concatenate(chosen)


def _usual(noise: Array) -> float:
    """About twice the deviation of what is drawn like this. The largest would be one that jumped, where one did."""
    if noise.size < budgets.FEW_ALIKE:
        return 3 * float(np.partition(noise, middle := (noise.size - 1) // 2)[middle])
    # numpy's own way to a quantile takes ten times as long for as few
    below, part = divmod(0.75 * (noise.size - 1), 1)
    first, second = np.partition(noise, [int(below), int(below) + 1])[[int(below), int(below) + 1]]
    return 2 * float(first + part * (second - first))


def largest_alike(values: Array, gap: int = _GAP, *, strays: bool = False) -> Array:
    """For each element the largest magnitude that octaves without a gap lead to; zeros count to the smallest ones.

    With `strays`, a few of many that lie below a gap count to those above it: they cancelled by chance.
    """
    return in_octaves_of(values, largest_by_octave(values, gap, strays=strays))


def largest_by_octave(values: Array, gap: int = _GAP, *, strays: bool = False) -> dict[int, float]:
    """The same, of which all elements of an octave have one."""
    octaves = octaves_of(values)
    counts = _counts_in(octaves)
    every = np.flatnonzero(counts) + _LOWEST
    present = every[every != _LOWEST]
    if not present.size:
        return {}
    steps = np.diff(present)
    ends = np.flatnonzero(steps > gap)
    if strays:
        below = np.cumsum(counts)[present[ends] - _LOWEST]
        is_stray = (below <= _STRAYS * values.size) & (steps[ends] <= _WIDEST_GAP_OF_STRAYS)
        ends = ends[~is_stray]
    ends = np.append(ends, present.size - 1)
    magnitudes = np.abs(values)
    tops = np.array([magnitudes[octaves == present[end]].max() for end in ends])
    answers = tops[np.searchsorted(present[ends], every)]
    return dict(zip(every.tolist(), answers.tolist(), strict=True))


@dataclass
class NoiseByOctave:
    """The rounding noise of one output in the calls for which it was measured, a number for each octave and call."""

    _measured: dict[int, list[float]] = field(default_factory=dict)

    def measured(self, values: Array, noise: Array, share: float = 0.0) -> None:
        """What one call came to: the noise that this share of its elements is below, in each octave."""
        present, parts = _by_octave(octaves_of(values), noise)
        for octave, part in zip(present.tolist(), parts, strict=True):
            least = np.quantile(part, share) if share else part.min()
            self._measured.setdefault(octave, []).append(float(least))

    @property
    def tells(self) -> bool:
        """Whether enough calls were measured, in any octave."""
        return any(len(calls) >= budgets.ENOUGH_MEASURED_CALLS for calls in self._measured.values())

    def least(self, values: Array) -> Array:
        """What can be relied on at other sizes, whatever they are; 0 where too few calls were measured."""
        return self._chosen_noise(values, min)

    def typical(self, values: Array) -> Array:
        """The same of most sizes: at some, as where one pixel is an image, hardly anything is rounded."""
        return self._chosen_noise(values, statistics.median_low)

    def _chosen_noise(self, values: Array, choose: Callable[[list[float]], float]) -> Array:
        known = sorted(
            (octave, choose(calls))
            for octave, calls in self._measured.items()
            if len(calls) >= budgets.ENOUGH_MEASURED_CALLS and octave != _LOWEST
        )
        octaves = octaves_of(values)
        asked = _present(octaves).tolist() if known else ()
        return _looked_up({one: _noise_at(one, known) for one in asked if one != _LOWEST}, octaves)


def _noise_at(octave: int, known: list[tuple[int, float]]) -> float:
    """Measured, or between what was: larger numbers have no less noise, and it falls no faster than they do."""
    below = max((one for one in known if one[0] <= octave), default=None)
    above = min((one for one in known if one[0] >= octave), default=None)
    from_below = 0.0 if below is None else below[1]
    if above is None:
        return from_below
    slope = 1.0 if below is not None else _slope(known)
    return max(from_below, above[1] * math.pow(2.0, slope * (octave - above[0])))


def _slope(known: list[tuple[int, float]]) -> float:
    """How noise falls among the smallest numbers, per octave: not at all where it is that of what they are summed of,
    and by half where it is their own.
    """
    (lowest, least), (near, noise) = known[0], [one for one in known if one[0] <= known[0][0] + 3][-1]
    return 1.0 if near == lowest or not least else float(np.clip(np.log2(noise / least) / (near - lowest), 0.0, 1.0))
