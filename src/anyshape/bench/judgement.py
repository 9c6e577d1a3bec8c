"""Are two outputs the same up to rounding? The tolerance is rounding noise of that very call, never a fixed number.

One rule: an output is wrong when its error exceeds so many times the noise. Integers must be equal, except where
rounding decides them (a tie under argmax). There are two ways to know the noise:

- `Oracles`, beside a model: what PyTorch itself loses against float64. A right file mostly differs from float64 by 0.5
  to 3 times that, a wrong one by far more, so the limit is a factor of 8.
- `MovedRuns`, where only a file is there to be asked: what moving each float input by one rounding changes in it, and
  at least a small part of the largest value, since integers as inputs cannot be moved at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np

from anyshape.runtime.session import Array, Feeds
from anyshape.sizes import budgets

# Measured on 59 right files and 149 that were changed slightly: right ones never exceed 2.7, at all levels of the
# runtime's optimisers and all scales of inputs; what lies below 8 and is wrong are weights that differ by 1e-5 or less.
# A fixed tolerance fails both ways: 1e-3 refuses right sums of thousands, and takes any error in small probabilities.
FACTOR = 8.0
"""An output is wrong when its error exceeds this many times the rounding noise."""
_UNSETTLED_FLOOR = 1e-5
"""Relative tolerance where no float64 run can be had."""


@dataclass(frozen=True)
class Tolerance:
    """The user's own tolerance, elementwise; None: the model's rounding noise decides."""

    atol: float | None = None
    rtol: float | None = None
    of_largest: float | None = None
    """Relative to the output's largest value: the loss of a file in a narrow type, measured at the example's size."""
    factor: float = FACTOR
    """How many times the rounding noise is allowed."""

    @property
    def is_given(self) -> bool:
        return self.atol is not None or self.rtol is not None or self.of_largest is not None

    def allowed(self, expected: Array) -> Array:
        sizes = np.abs(expected)
        loss = (self.of_largest or 0.0) * float(sizes.max())
        return np.asarray(loss + (self.atol or 0.0) + (self.rtol or 0.0) * sizes)


@dataclass(frozen=True)
class Difference:
    """What is wrong with one output, as a sentence without its name: `differs by 0.31 (allowed 1.2e-05)`."""

    kind: str
    sentence: str


@dataclass(frozen=True)
class Judgement:
    """How far an output is from the reference, in units of rounding noise, and what is wrong with it, if anything."""

    ratio: float
    difference: Difference | None = None


@dataclass(frozen=True)
class _Floats:
    """One output of floats, in float64, where both sides are finite."""

    got: Array
    want: Array
    finite: Array
    """These places in the whole output."""
    epsilon: float
    """Of the reference's type."""
    tiny: float

    @property
    def distance(self) -> float:
        return float(np.abs(self.got - self.want).max())

    @property
    def largest(self) -> float:
        return float(np.abs(self.want).max())

    def moved_by(self, runs: list[Array]) -> float:
        """How far runs with roundings moved are from the reference."""
        gaps = [np.abs(_in_float64(run)[self.finite] - self.want) for run in runs if run.shape == self.finite.shape]
        return max((float(np.nan_to_num(gap, nan=0.0, posinf=0.0).max()) for gap in gaps), default=0.0)


def judge(actual: Array, expected: Array, noise: Oracles | MovedRuns, tolerance: Tolerance | None = None) -> Judgement:
    """Compare one output of the file with the reference's."""
    tolerance = tolerance or Tolerance()
    if actual.dtype != expected.dtype and not noise.may_be_of_types(actual.dtype, expected.dtype):
        return _wrong_judgement("wrong-type", f"has type {actual.dtype}, in {noise.whose} {expected.dtype}")
    if actual.shape != expected.shape:
        return _wrong_judgement("wrong-shape", f"has shape {actual.shape}, in {noise.whose} {expected.shape}")
    if expected.size == 0:
        return Judgement(0.0)
    if not is_floating(expected.dtype):
        return _judge_integers(actual, expected, noise)
    with np.errstate(all="ignore"):  # inf - inf, and what a narrow type cannot hold
        return _judge_floats(actual, expected, noise, tolerance)


def are_close(actual: Array, expected: Array, moved: Callable[[int], Array]) -> bool:
    """Whether two outputs of files are the same; `moved` is the reference with its inputs moved, the n-th time."""
    return judge(actual, expected, MovedRuns(moved)).difference is None


def is_floating(dtype: np.dtype[np.generic]) -> bool:
    """Numpy's own floats, and those that it borrows, such as bfloat16."""
    return "float" in dtype.name


def _in_float64(values: Array) -> Array:
    return values.astype(np.float64, copy=False)


def _wrong_judgement(kind: str, sentence: str) -> Judgement:
    return Judgement(math.inf, Difference(kind, sentence))


def _judge_floats(actual: Array, expected: Array, noise: Oracles | MovedRuns, tolerance: Tolerance) -> Judgement:
    got, want = _in_float64(actual), _in_float64(expected)
    finite = np.isfinite(want) & np.isfinite(got)
    # asked for rounding only where something is odd: jittered runs cost a run of the model each
    if not finite.all() and _special_values(got, want, noise) is not None:
        settled = ~noise.unsettled(want)
        if sentence := _special_values(got[settled], want[settled], noise):
            return _wrong_judgement("wrong-values", sentence)
    got, want = got[finite], want[finite]
    if not want.size:
        return Judgement(0.0)
    if tolerance.is_given:
        return _judge_by_user(got, want, tolerance)
    limits = ml_dtypes.finfo(expected.dtype)  # type: ignore[no-untyped-call]
    return noise.judge(_Floats(got, want, finite, float(limits.eps), float(limits.tiny)), tolerance.factor)


def _special_values(got: Array, want: Array, noise: Oracles | MovedRuns) -> str | None:
    """NaN and inf must stand at the same places."""
    for kind, test in (("NaN", np.isnan), ("inf", np.isposinf), ("-inf", np.isneginf)):
        here, there = test(got), test(want)
        if not np.array_equal(here, there):
            return noise.misplaced(kind, int(here.sum()), int(there.sum()))
    return None


def _judge_by_user(got: Array, want: Array, tolerance: Tolerance) -> Judgement:
    error, allowed = np.abs(got - want), tolerance.allowed(want)
    worst = int((error - allowed).argmax())  # what exceeds its own allowance the most is told
    return _judge_by_noise(float(error[worst]), float(allowed[worst]), 1.0)


def _judge_by_noise(error: float, noise: float, factor: float) -> Judgement:
    """The rule."""
    ratio = error / noise if noise else (math.inf if error else 0.0)
    if error <= factor * noise:
        return Judgement(ratio)
    return Judgement(ratio, Difference("wrong-values", _difference_in_words(error, factor * noise)))


def _difference_in_words(error: float, allowed: float) -> str:
    digits = next((n for n in range(2, 9) if f"{error:.{n}g}" != f"{allowed:.{n}g}"), 9)
    return f"differs by {error:.{digits}g} (allowed {allowed:.{digits}g})"


def _judge_integers(actual: Array, expected: Array, noise: Oracles | MovedRuns) -> Judgement:
    wrong = np.asarray(actual != expected)
    if not wrong.any():
        return Judgement(0.0)
    for run in noise.runs_for_ties():
        if run.shape == expected.shape:
            wrong = wrong & (run == expected)
    if not wrong.any():
        return Judgement(0.0)
    place = tuple(int(i) for i in np.argwhere(wrong)[0])
    return _wrong_judgement(
        "wrong-values",
        f"differs in {int(wrong.sum())} of {wrong.size} places, "
        f"first at {list(place)}: {actual[place]}, in {noise.whose} {expected[place]}",
    )


# ---- the noise of a model

_MOST_RELIED_ON = 4e-6
"""Where results are mostly rounding, as differences of nearly equal numbers are, other sizes may be another matter."""


class Noise:
    """The rounding noise of one output, as a part of its largest value, in the calls for which it was measured."""

    def __init__(self) -> None:
        self._measured: list[float] = []

    def measured(self, noise: float) -> None:
        self._measured.append(noise)

    @property
    def least(self) -> float:
        """The least of all, to rely on elsewhere; 0 where too few were measured, or where it is no small part."""
        least = min(self._measured) if len(self._measured) >= budgets.ENOUGH_MEASURED_CALLS else 0.0
        return least if least <= _MOST_RELIED_ON else 0.0


@dataclass(frozen=True)
class Oracles:
    """Further runs of the model, made only when they are needed."""

    exact: Callable[[], Array | None]
    """This output in float64; None where the model cannot run in it."""
    jittered: Callable[[int], list[Array]]
    """This output when every operator's result moves by a rounding, so many times."""
    noise: Noise = field(default_factory=Noise)
    """What was measured before."""

    whose = "PyTorch"

    def may_be_of_types(self, actual: np.dtype[np.generic], expected: np.dtype[np.generic]) -> bool:
        """A file may compute and give its results in a wider or a narrower type."""
        return is_floating(actual) and is_floating(expected)

    def misplaced(self, kind: str, here: int, there: int) -> str:
        counts = f"has {here} {kind}, in PyTorch {there}"
        return counts if here != there else f"has {kind} at other places than in PyTorch"

    def unsettled(self, want: Array) -> Array:
        """The places at which rounding alone makes a NaN or an inf, or takes one away: only there it is excused."""
        places = np.zeros(want.shape, dtype=bool)
        for run in self.jittered(budgets.JITTERED_RUNS_FOR_FLOATS):
            if run.shape == want.shape:
                places |= _special_kinds(_in_float64(run)) != _special_kinds(want)
        return places

    def runs_for_ties(self) -> Iterator[Array]:
        yield from self.jittered(budgets.JITTERED_RUNS_FOR_TIES)
        if (exact := self.exact()) is not None:
            yield exact

    def judge(self, floats: _Floats, factor: float) -> Judgement:
        distance, scale = floats.distance, floats.largest
        if distance < floats.tiny:
            return Judgement(0.0)  # a runtime may take numbers so small for zero
        floor = floats.epsilon * scale
        # noise is at least `floor`, and PyTorch within it of the truth: so much is allowed, whatever float64 would say.
        # Where it is half of that, small results are asked for their noise all the same: the ratio is told to the user
        settled = (factor - 1) * floor if floats.want.size > budgets.SMALL_OUTPUT else (factor / 2 - 1) * floor
        if distance <= settled:
            return Judgement(distance / floor if floor else 0.0)
        usual = scale * self.noise.least
        if distance <= factor / 2 * usual:  # with room for less noise here than anywhere else
            return Judgement(distance / usual)
        exact = self.exact()
        truth = _in_float64(exact)[floats.finite] if exact is not None and exact.shape == floats.finite.shape else None
        if truth is None or not np.isfinite(truth).all():
            least = _UNSETTLED_FLOOR / FACTOR * scale
            return _judge_by_noise(distance, max(self._jitter(floats), floor, least), factor)
        return self._judge_by_truth(floats, truth, factor)

    def _judge_by_truth(self, floats: _Floats, truth: Array, factor: float) -> Judgement:
        noise = max(float(np.abs(floats.want - truth).max()), floats.epsilon * float(np.abs(truth).max()))
        if scale := floats.largest:
            self.noise.measured(noise / scale)
        error = float(np.abs(floats.got - truth).max())
        if error > factor * noise:
            # one sample of rounding may be lucky: a result that is exactly zero has none. Moving all results shows more
            noise = max(noise, self._jitter(floats))
        return _judge_by_noise(error, noise, factor)

    def _jitter(self, floats: _Floats) -> float:
        return floats.moved_by(self.jittered(budgets.JITTERED_RUNS_FOR_FLOATS))


def _special_kinds(values: Array) -> Array:
    """A number for each kind of value: finite, NaN, inf, -inf."""
    return np.asarray(np.isnan(values) + 2 * np.isposinf(values) + 4 * np.isneginf(values))


# ---- the noise of a file


@dataclass(frozen=True)
class MovedRuns:
    """A file whose inputs are moved by a rounding."""

    moved: Callable[[int], Array]
    """This output, the n-th time."""

    whose = "the static file"

    def may_be_of_types(self, actual: np.dtype[np.generic], expected: np.dtype[np.generic]) -> bool:
        del actual, expected
        return False  # both files compute in the same types

    def misplaced(self, kind: str, here: int, there: int) -> str:
        return f"has {here} {kind}, in the static file {there}, or at other places"

    def unsettled(self, want: Array) -> Array:
        return np.zeros(want.shape, dtype=bool)

    def runs_for_ties(self) -> Iterator[Array]:
        return (self.moved(number) for number in range(budgets.JITTERED_RUNS_FOR_FLOATS))

    def judge(self, floats: _Floats, factor: float) -> Judgement:
        distance, noise = floats.distance, floats.largest * max(_UNSETTLED_FLOOR / FACTOR, floats.epsilon)
        if distance > factor * noise:
            noise = max(noise, floats.moved_by(list(self.runs_for_ties())))  # as many as for ties
        return _judge_by_noise(distance, noise, factor)


def moved_by_rounding(feeds: Feeds, number: int) -> Feeds:
    """Each float goes to a neighbouring number, up or down by chance."""
    chance = np.random.default_rng(number)
    return {name: _neighbours(value, chance) if value.dtype.kind == "f" else value for name, value in feeds.items()}


def _neighbours(value: Array, chance: np.random.Generator) -> Array:
    towards = np.where(chance.random(value.shape) < 0.5, -np.inf, np.inf).astype(value.dtype)
    return np.asarray(np.nextafter(value, towards), dtype=value.dtype)
