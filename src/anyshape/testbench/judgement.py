"""Are two outputs the same up to rounding? Each element is judged by the noise of that very element in that very call.

One rule: an element is wrong when its error exceeds so many times its noise. Integers and flags must be equal, or what
some run with moved roundings gave at that place (a tie under argmax). There are two ways to know the noise:

- `Oracles`, beside a model: what PyTorch itself loses there against float64, what it usually loses in elements of like
  magnitude, and a rounding of the element's own value. A right file mostly differs from float64 by 0.5 to 3 times
  that, a wrong one by far more, so the limit is a factor of 8. What that leaves in doubt is run with its roundings
  moved, eight times as far: an element is excused as far as it moves, and no other for its sake.
- `MovedRuns`, where only a file is there to be asked: what moving each float input by one rounding changes in it, and
  at least a small part of the largest value alike, since integers as inputs cannot be moved at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import ml_dtypes
import numpy as np

from anyshape.runtime.session import Array, Feeds
from anyshape.sizes import budgets
from anyshape.testbench.likeness import (
    NoiseByOctave,
    in_octaves_of,
    largest_alike,
    largest_by_octave,
    lent_noise,
    usual_by_octave,
)

# Measured on 59 right files and 149 that were changed slightly: right ones never exceed 2.7, at all levels of the
# runtime's optimisers and all scales of inputs; what lies below 8 and is wrong are weights that differ by 1e-5 or less.
# A fixed tolerance fails both ways: 1e-3 refuses right sums of thousands, and takes any error in small probabilities.
FACTOR = 8.0
"""An output is wrong when its error exceeds this many times the rounding noise."""
_JUMP = 256
"""Roundings of the largest value alike: a loss beyond is a decision that fell otherwise; it tells nothing of others."""
_GAP_OF_NARROW_FILES = 12
"""Octaves: what is quantised together loses alike, whatever the single value; a mask is further away than that."""
_UNSETTLED_FLOOR = 1e-5
"""Relative tolerance where no float64 run can be had."""


@dataclass(frozen=True)
class Tolerance:
    """The user's own tolerance, elementwise; None: the model's rounding noise decides."""

    atol: float | None = None
    rtol: float | None = None
    of_largest: float | None = None
    """Relative to the largest value alike: the loss of a file in a narrow type, measured at the example's size."""
    factor: float = FACTOR
    """How many times the rounding noise is allowed."""

    @property
    def is_given(self) -> bool:
        return self.atol is not None or self.rtol is not None or self.of_largest is not None

    def allowed(self, expected: Array) -> Array:
        loss = self.of_largest * largest_alike(expected, _GAP_OF_NARROW_FILES) if self.of_largest else 0.0
        return np.asarray(loss + (self.atol or 0.0) + (self.rtol or 0.0) * np.abs(expected))


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
    """One output of floats where both sides are finite: in float64, or float32 that is computed with in float64."""

    got: Array
    want: Array
    finite: Array
    """These places in the whole output."""
    epsilon: float
    """Of the reference's type."""
    tiny: float

    @property
    def distance(self) -> Array:
        """From the reference; a runtime may take numbers below the smallest normal one for zero."""
        distance = np.subtract(self.got, self.want, dtype=np.float64)
        np.abs(distance, out=distance)
        distance[distance < self.tiny] = 0.0
        return distance

    @property
    def rounding(self) -> Array:
        """One, of each element's own value."""
        rounding = np.abs(self.want, dtype=np.float64)
        rounding *= self.epsilon
        return rounding

    @property
    def wide(self) -> _Floats:
        return replace(self, got=_in_float64(self.got), want=_in_float64(self.want))

    def parts(self) -> Iterator[tuple[slice, _Floats]]:
        """In float64, block by block."""
        for part in _blocks(self.want.size):
            yield part, replace(self, got=self.got[part], want=self.want[part]).wide

    def of_whole(self, output: Array) -> Array:
        """These places of another whole output, without a copy where nothing is left out."""
        wide = _in_float64(output)
        return wide.reshape(-1) if self.want.size == wide.size else wide[self.finite]

    def moved_by(self, run: Array, part: slice = slice(None)) -> Array:
        """How far a run with roundings moved is from the reference, in a part of these places."""
        want = self.want[part]
        if run.shape != self.finite.shape:
            return np.zeros(want.shape)
        found = run.reshape(-1) if self.want.size == run.size else run[self.finite]
        gap = np.abs(_in_float64(found[part]) - want)
        return np.asarray(np.nan_to_num(gap, copy=False, nan=0.0, posinf=0.0))


def judge(
    actual: Array,
    expected: Array,
    noise: Oracles | MovedRuns,
    tolerance: Tolerance | None = None,
    *,
    values: bool = True,
) -> Judgement:
    """Compare one output of the file with the reference's; without `values`, its type and shape alone."""
    tolerance = tolerance or Tolerance()
    if actual.dtype != expected.dtype and not noise.may_be_of_types(actual.dtype, expected.dtype):
        return _wrong_judgement("wrong-type", f"has type {actual.dtype}, in {noise.whose} {expected.dtype}")
    if actual.shape != expected.shape:
        return _wrong_judgement("wrong-shape", f"has shape {actual.shape}, in {noise.whose} {expected.shape}")
    if expected.size == 0 or not values:
        return Judgement(0.0)
    if not is_floating(expected.dtype):
        return _judge_integers(actual, expected, noise)
    if (actual == expected).all():
        return Judgement(0.0)  # most often so, and to be told what noise there is would take ten copies in float64
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
    is_single = actual.dtype == expected.dtype == np.float32
    got, want = (actual, expected) if is_single else (_in_float64(actual), _in_float64(expected))
    finite = np.isfinite(want) & np.isfinite(got)
    # asked for rounding only where something is odd: jittered runs cost a run of the model each
    if not finite.all() and _special_values(got, want, noise) is not None:
        got, want = _in_float64(got), _in_float64(want)
        want = noise.in_nearest_order(got, want)
        finite = np.isfinite(want) & np.isfinite(got)
        settled = ~noise.unsettled(want)
        if sentence := _special_values(got[settled], want[settled], noise):
            return _wrong_judgement("wrong-values", sentence)
    # without a copy where nothing is left out
    got, want = (one.reshape(-1) if finite.all() else one[finite] for one in (got, want))
    if not want.size:
        return Judgement(0.0)
    if tolerance.is_given:
        return _judge_by_user(_in_float64(got), _in_float64(want), tolerance)
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
    return _judge_by_noise(np.abs(got - want), tolerance.allowed(want), 1.0)


def _judge_by_noise(error: Array, noise: Array, factor: float) -> Judgement:
    """The rule. Of what is wrong, the largest error is told."""
    largest = max((_largest_ratio(error[part], noise[part]) for part in _blocks(error.size)), default=0.0)
    if not any((error[part] > factor * noise[part]).any() for part in _blocks(error.size)):
        return Judgement(largest)
    wrong = error > factor * noise
    worst = int(np.where(wrong, error, -1.0).argmax())
    sentence = _difference_in_words(float(error[worst]), factor * float(noise[worst]))
    return Judgement(largest, Difference("wrong-values", sentence))


def _largest_ratio(error: Array, noise: Array) -> float:
    return float(np.where(error == 0, 0.0, error / noise).max())


def _blocks(count: int) -> Iterator[slice]:
    """Of millions of elements many numbers are computed, each of which would be as long in memory."""
    return (slice(start, start + step) for step in [budgets.ELEMENTS_OF_A_BLOCK] for start in range(0, count, step))


def _judge_within(floats: _Floats, limits: Callable[[slice, _Floats], tuple[Array, Array]]) -> Judgement | None:
    """Right, where each element is within its limit, which is never beyond what its noise allows; None elsewhere."""
    largest = 0.0
    for place, part in floats.parts():
        distance = part.distance
        limit, noise = limits(place, part)
        if not (distance <= limit).all():
            return None
        largest = max(largest, _largest_ratio(distance, noise))
    return Judgement(largest)


def _difference_in_words(error: float, allowed: float) -> str:
    digits = next((n for n in range(2, 9) if f"{error:.{n}g}" != f"{allowed:.{n}g}"), 9)
    return f"differs by {error:.{digits}g} (allowed {allowed:.{digits}g})"


def _judge_integers(actual: Array, expected: Array, noise: Oracles | MovedRuns) -> Judgement:
    wrong = np.asarray(actual != expected)
    if not wrong.any():
        return Judgement(0.0)
    for run in noise.runs_for_ties():
        if run.shape == expected.shape:
            wrong = wrong & (run != actual)
        if not wrong.any():
            return Judgement(0.0)
    place = tuple(int(i) for i in np.argwhere(wrong)[0])
    return _wrong_judgement(
        "wrong-values",
        f"differs in {int(wrong.sum())} of {wrong.size} places, "
        f"first at {list(place)}: {actual[place]}, in {noise.whose} {expected[place]}",
    )


# ---- the noise of a model


@dataclass(frozen=True)
class Noises:
    """The rounding noise of one output as far as it was measured in earlier calls: against float64, and by jitter."""

    against_float64: NoiseByOctave = field(default_factory=NoiseByOctave)
    by_jitter: NoiseByOctave = field(default_factory=NoiseByOctave)


@dataclass(frozen=True)
class Oracles:
    """Further runs of the model, made only when they are needed."""

    exact: Callable[[], Array | None]
    """This output in float64; None where the model cannot run in it."""
    jittered: Callable[[int], Array | None]
    """This output when every result that is rounded moves by as many roundings as are allowed, the n-th time."""
    noises: Noises = field(default_factory=Noises)
    """What was measured before."""
    takes_narrower: bool = False
    """Whether the file computes in a narrower type than the model, by its own declaration."""
    reordered: Callable[[], Array | None] = lambda: None
    """This output where equal values, whose order PyTorch leaves open, stand in ONNX's; None where there are none."""

    whose = "PyTorch"

    def may_be_of_types(self, actual: np.dtype[np.generic], expected: np.dtype[np.generic]) -> bool:
        is_narrower = is_floating(actual) and is_floating(expected) and actual.itemsize < expected.itemsize
        return self.takes_narrower and is_narrower

    def misplaced(self, kind: str, here: int, there: int) -> str:
        counts = f"has {here} {kind}, in PyTorch {there}"
        return counts if here != there else f"has {kind} at other places than in PyTorch"

    def unsettled(self, want: Array) -> Array:
        """The places at which rounding alone makes a NaN or an inf, or takes one away: only there it is excused."""
        places = np.zeros(want.shape, dtype=bool)
        for run in self._jittered_runs(budgets.JITTERED_RUNS_TO_BEGIN_WITH):
            if run.shape == want.shape:
                places |= _special_kinds(_in_float64(run)) != _special_kinds(want)
        exact, largest = self.exact(), np.max(np.abs(want), initial=0.0, where=np.isfinite(want))
        if exact is not None and exact.shape == want.shape and largest > 0:
            off = np.abs(_in_float64(exact) - want)
            # the inverse of a singular matrix: PyTorch has hardly a digit of it, either
            places |= (off > np.abs(want) / 16) & bool((off > largest / 2).any())
            # the logarithm of a determinant that is zero but for rounding
            places |= np.isnan(exact) & np.isfinite(want)
        return places

    def in_nearest_order(self, got: Array, want: Array, places: Array | None = None) -> Array:
        """The reference, with elements of the reordered run where these are nearer; of some places alone, if told."""
        run = self.reordered()
        if run is None or run.shape != (want if places is None else places).shape:
            return want
        other = _in_float64(run) if places is None else _in_float64(run)[places]
        near, nearer = np.abs(got - want), np.abs(got - other)
        same = (got == other) | (np.isnan(got) & np.isnan(other))
        return np.where(same | (nearer < near) | (np.isnan(near) & np.isfinite(nearer)), other, want)

    def runs_for_ties(self) -> Iterator[Array]:
        if (reordered := self.reordered()) is not None:
            yield reordered
        if (exact := self.exact()) is not None:
            yield exact
        yield from self._jittered_runs(budgets.MOST_JITTERED_RUNS)

    def _jittered_runs(self, count: int) -> Iterator[Array]:
        return (run for run in map(self.jittered, range(count)) if run is not None)

    def judge(self, floats: _Floats, factor: float) -> Judgement:
        """By as little as settles it."""
        if (found := self._judge_by_what_is_known(floats, factor)) is not None:
            return found
        exact = self.exact()
        truth = None if exact is None or exact.shape != floats.finite.shape else floats.of_whole(exact)
        if truth is None or not np.isfinite(truth).all():
            wide = floats.wide
            noise = np.maximum(wide.rounding, _UNSETTLED_FLOOR / FACTOR * np.abs(wide.want))
            return self._judge_by_jitter(wide, wide.distance, noise, factor)
        noise = self._noise_beside(truth, floats, factor)
        error = np.subtract(floats.got, truth, dtype=np.float64)
        np.abs(error, out=error)
        if all((error[part] <= factor * noise[part]).all() for part in _blocks(error.size)):
            return _judge_by_noise(error, noise, factor)
        return self._judge_by_jitter(floats, error, noise, factor)

    def _judge_by_what_is_known(self, floats: _Floats, factor: float) -> Judgement | None:
        # noise is at least a rounding, and PyTorch within it of the truth: so much is allowed, whatever float64 would
        # say. Where it is half of that, small results are asked for their noise all the same: the ratio is told
        settled = factor - 1 if floats.want.size > budgets.SMALL_OUTPUT else factor / 2 - 1
        known = self.noises.against_float64

        def by_rounding(_: slice, part: _Floats) -> tuple[Array, Array]:
            return settled * part.rounding, part.rounding

        def by_least(_: slice, part: _Floats) -> tuple[Array, Array]:
            # with room for less noise here than anywhere else
            usual, rounding = known.least(part.want), part.rounding
            return np.maximum(settled * rounding, factor / 2 * usual), np.maximum(rounding, usual)

        def by_typical(place: slice, part: _Floats) -> tuple[Array, Array]:
            # two programs that differ no more than either rounds, mostly, and nowhere more than elements like it do:
            # there PyTorch is within two such noises of the truth
            usual, rounding = known.typical(part.want), part.rounding
            alike = np.minimum(usual, lent[place])
            return np.maximum(settled * rounding, (factor - 2) * alike), np.maximum(rounding, usual)

        if (found := _judge_within(floats, by_rounding)) is not None or not known.tells:
            return found
        if (found := _judge_within(floats, by_least)) is not None:
            return found
        lent = lent_noise(floats.want, floats.distance)
        return _judge_within(floats, by_typical)

    def _noise_beside(self, truth: Array, floats: _Floats, factor: float) -> Array:
        """An element's own loss counts in full where it is of the usual kind; one that jumps is allowed to jump so far,
        and not eight times as far.
        """
        own = np.subtract(floats.want, truth, dtype=np.float64)
        np.abs(own, out=own)
        usual = largest_alike(floats.want)
        is_usual = own <= np.multiply(usual, _JUMP * floats.epsilon, out=usual)
        usual[:] = 0.0
        np.copyto(usual, own, where=is_usual)
        lent = usual_by_octave(floats.want, usual)
        del usual  # of millions of elements, each such array is as large as a part of the model's weights
        alike = in_octaves_of(floats.want, lent)
        for part in _blocks(own.size):
            magnitudes = np.maximum(np.abs(truth[part]), np.abs(floats.want[part]))
            np.maximum(alike[part], floats.epsilon * magnitudes, out=alike[part])
        self.noises.against_float64.measured(floats.want, alike)
        for part in _blocks(own.size):
            jumps = own[part] > factor * alike[part]
            np.maximum(alike[part], np.where(jumps, own[part] / factor, own[part]), out=alike[part])
        return alike

    def _judge_by_jitter(self, floats: _Floats, error: Array, noise: Array, factor: float) -> Judgement:
        """Each element that is in doubt may be as far off as it moves itself; where a decision falls otherwise, give or
        take the noise of what follows from it.
        """
        floats = replace(floats, want=self.in_nearest_order(floats.got, floats.want, floats.finite))
        np.maximum(noise, floats.rounding, out=noise)
        distance = floats.distance
        np.minimum(distance, error, out=distance)
        # of most calls half of what most elements like it moved: an answer that flips does so by all of it
        usual = self.noises.by_jitter.typical
        parts = list(_blocks(distance.size))
        limits = ((p, factor * noise[p], factor / 2 * usual(floats.want[p])) for p in parts)
        if all(((error[p] <= own) | (distance[p] <= alike)).all() for p, own, alike in limits):
            for part in parts:
                np.maximum(noise[part], usual(floats.want[part]), out=noise[part])
            return _judge_by_noise(distance, noise, factor)
        largest, spread = largest_by_octave(floats.want), np.zeros(distance.shape)
        doubtful = np.concatenate([error[part] > factor * noise[part] for part in parts])

        def allowed(part: slice) -> Array:
            jump = _JUMP * floats.epsilon * in_octaves_of(floats.want[part], largest)
            more = factor * np.maximum(noise[part], floats.epsilon * spread[part])
            return np.asarray(spread[part] + np.where(spread[part] > jump, more, 0.0))

        for number, run in enumerate(self._jittered_runs(budgets.MOST_JITTERED_RUNS), 1):
            for part in parts:
                # runs move as far as is allowed by default; some files are allowed more
                moved = floats.moved_by(run, part) * (factor / FACTOR)
                np.maximum(spread[part], moved, out=spread[part])
                doubtful[part] &= distance[part] > allowed(part)
            if not doubtful.any():
                break
            is_enough = number >= budgets.JITTERED_RUNS_TO_BEGIN_WITH
            if is_enough and distance[doubtful].max() > factor * float(spread.max()):
                break  # nothing in this output moves nearly as far
        for part in parts:
            np.copyto(error[part], distance[part], where=error[part] > factor * noise[part])
            noise[part] = np.maximum(noise[part], allowed(part) / factor)
        spread /= factor
        self.noises.by_jitter.measured(floats.want, spread, share=0.5)
        return _judge_by_noise(error, noise, factor)


def _special_kinds(values: Array) -> Array:
    """A number for each kind of value: finite, NaN, inf, -inf."""
    return np.asarray(np.isnan(values) + 2 * np.isposinf(values) + 4 * np.isneginf(values))


# ---- the noise of a file


@dataclass(frozen=True)
class MovedRuns:
    """A file whose inputs are moved by a rounding."""

    moved: Callable[[int], Array]
    """This output, the n-th time."""
    whose: str = "the static file"
    takes_narrower: bool = False
    """Whether what is compared with it may compute in a narrower type."""

    def may_be_of_types(self, actual: np.dtype[np.generic], expected: np.dtype[np.generic]) -> bool:
        return self.takes_narrower and is_floating(actual) and is_floating(expected)

    def misplaced(self, kind: str, here: int, there: int) -> str:
        return f"has {here} {kind}, in {self.whose} {there}, or at other places"

    def unsettled(self, want: Array) -> Array:
        return np.zeros(want.shape, dtype=bool)

    def in_nearest_order(self, got: Array, want: Array) -> Array:
        del got
        return want

    def runs_for_ties(self) -> Iterator[Array]:
        return map(self.moved, range(budgets.JITTERED_RUNS_TO_BEGIN_WITH))

    def judge(self, floats: _Floats, factor: float) -> Judgement:
        floats = floats.wide
        least = max(_UNSETTLED_FLOOR / FACTOR, floats.epsilon)
        # inputs may be whole numbers, which no rounding moves: then nothing else tells of an element that cancelled
        distance, noise = floats.distance, largest_alike(floats.want, strays=True) * least
        if (distance > factor * noise).any():
            spread = np.max([floats.moved_by(run) for run in self.runs_for_ties()], axis=0)
            noise = np.maximum(noise, np.maximum(spread, lent_noise(floats.want, spread)))
        return _judge_by_noise(distance, noise, factor)


def moved_by_rounding(feeds: Feeds, number: int) -> Feeds:
    """Each float goes to a neighbouring number, up or down by chance."""
    chance = np.random.default_rng(number)
    return {name: _neighbours(value, chance) if value.dtype.kind == "f" else value for name, value in feeds.items()}


def _neighbours(value: Array, chance: np.random.Generator) -> Array:
    towards = np.where(chance.random(value.shape) < 0.5, -np.inf, np.inf).astype(value.dtype)
    return np.asarray(np.nextafter(value, towards), dtype=value.dtype)
