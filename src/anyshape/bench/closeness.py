"""Are two arrays the same up to rounding? As `comparison.py` asks it, where there is no module to ask in float64.

The noise is what moving each float input by one rounding changes in the reference, and at least a small part of the
largest value. Integers must be equal, except where such a move decides them (a tie under argmax).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from anyshape.runtime.session import Array, Feeds

FACTOR = 8.0
"""An output is wrong when its error exceeds this many times the noise; the same factor as in `comparison.py`."""
_LEAST = 1e-5 / FACTOR
"""Of the largest value: the noise where moved inputs show less; integers as inputs cannot be moved at all."""
_RUNS = 4
Moved = Callable[[int], Array]
"""The reference with its inputs moved by a rounding, the n-th time."""


def difference(actual: Array, expected: Array, moved: Moved) -> tuple[float, str | None]:
    """The error in units of noise, and the sentence where it is too large: `differs by 0.31 (allowed 1.2e-05)`."""
    if actual.dtype != expected.dtype:
        return math.inf, f"has type {actual.dtype}, in the static file {expected.dtype}"
    if actual.shape != expected.shape:
        return math.inf, f"has shape {actual.shape}, in the static file {expected.shape}"
    if not expected.size or np.array_equal(actual, expected):
        return 0.0, None
    if np.issubdtype(expected.dtype, np.floating):
        return _difference_of_floats(actual, expected, moved)
    return _difference_of_integers(actual, expected, moved)


def are_close(actual: Array, expected: Array, moved: Moved) -> bool:
    return difference(actual, expected, moved)[1] is None


def _difference_of_floats(actual: Array, expected: Array, moved: Moved) -> tuple[float, str | None]:
    for kind, test in (("NaN", np.isnan), ("inf", np.isposinf), ("-inf", np.isneginf)):
        here, there = test(actual), test(expected)
        if not np.array_equal(here, there):
            return math.inf, f"has {int(here.sum())} {kind}, in the static file {int(there.sum())}, or at other places"
    finite = np.isfinite(expected)
    got, want = actual[finite].astype(np.float64), expected[finite].astype(np.float64)
    if not want.size:
        return 0.0, None
    error, largest = float(np.abs(got - want).max()), float(np.abs(want).max())
    noise = largest * max(_LEAST, float(np.finfo(expected.dtype).eps))
    if error > FACTOR * noise:
        noise = max(noise, _noise(expected, finite, moved))
    if error <= FACTOR * noise:
        return (error / noise if noise else 0.0), None
    return (error / noise if noise else math.inf), f"differs by {error:.2g} (allowed {FACTOR * noise:.2g})"


def _noise(expected: Array, finite: Array, moved: Moved) -> float:
    runs = [moved(number) for number in range(_RUNS)]
    gaps = [np.abs(run - expected)[finite] for run in runs if run.shape == expected.shape]
    return max((float(np.nan_to_num(gap, posinf=0.0).max()) for gap in gaps), default=0.0)


def _difference_of_integers(actual: Array, expected: Array, moved: Moved) -> tuple[float, str | None]:
    wrong = actual != expected
    for number in range(_RUNS):
        run = moved(number)
        if run.shape == expected.shape:
            wrong &= run == expected
    if not wrong.any():
        return 0.0, None
    place = tuple(int(i) for i in np.argwhere(wrong)[0])
    sentence = (
        f"differs in {int(wrong.sum())} of {wrong.size} places, first at {list(place)}: "
        f"{actual[place]}, in the static file {expected[place]}"
    )
    return math.inf, sentence


def moved_by_rounding(feeds: Feeds, number: int) -> Feeds:
    """Each float goes to a neighbouring number, up or down by chance."""
    chance = np.random.default_rng(number)
    return {name: _moved(value, chance) if value.dtype.kind == "f" else value for name, value in feeds.items()}


def _moved(value: Array, chance: np.random.Generator) -> Array:
    towards = np.where(chance.random(value.shape) < 0.5, -np.inf, np.inf).astype(value.dtype)
    return np.asarray(np.nextafter(value, towards), dtype=value.dtype)
