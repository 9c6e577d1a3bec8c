"""Are two outputs the same? The tolerance is the model's own rounding noise at that size, never a fixed number.

A right file mostly differs from float64 by 0.5 to 3 times what PyTorch itself does in float32; a wrong one by far more.
The limit is a factor of 8. Integers must be equal, except where the model's own rounding decides them (a tie under
argmax).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

FACTOR = 8.0
"""An output is wrong when its error exceeds this many times the rounding noise."""
_RUNS_FOR_FLOATS = 4
_RUNS_FOR_TIES = 24
"""A tie between two falls the same way in all of these once in 16 million."""
_SMALL = 2**16
"""Elements of a result whose model runs in float64 at little cost."""
_ENOUGH_MEASURED = 6
"""Calls for which the noise is measured; after that it hardly differs, as a part of the largest value."""
_MOST_RELIED_ON = 4e-6
"""Where results are mostly rounding, as differences of nearly equal numbers are, other sizes may be another matter."""
_UNSETTLED_FLOOR = 1e-5
"""Relative tolerance where no float64 run of the model can be had."""


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

    def allowed(self, expected: torch.Tensor) -> torch.Tensor:
        loss = (self.of_largest or 0.0) * float(expected.abs().max())
        return loss + (self.atol or 0.0) + (self.rtol or 0.0) * expected.abs()


@dataclass(frozen=True)
class Difference:
    """What is wrong with one output, as a sentence without its name: `differs by 0.31 (allowed 1.2e-05)`."""

    output: str
    kind: str
    sentence: str


@dataclass(frozen=True)
class Judgement:
    """How far an output is from the reference, in units of rounding noise, and what is wrong with it, if anything."""

    ratio: float
    difference: Difference | None = None


class Noise:
    """The rounding noise of one output, as a part of its largest value, in the calls for which it was measured."""

    def __init__(self) -> None:
        self._measured: list[float] = []

    def measured(self, noise: float) -> None:
        self._measured.append(noise)

    @property
    def least(self) -> float:
        """The least of all, to rely on elsewhere; 0 where too few were measured, or where it is no small part."""
        least = min(self._measured) if len(self._measured) >= _ENOUGH_MEASURED else 0.0
        return least if least <= _MOST_RELIED_ON else 0.0


@dataclass(frozen=True)
class Oracles:
    """Further runs of the reference, made only when they are needed."""

    exact: Callable[[], torch.Tensor | None]
    """This output in float64; None where the model cannot run in it."""
    jittered: Callable[[int], list[torch.Tensor]]
    """This output when every operator's result moves by a rounding, so many times."""
    noise: Noise = field(default_factory=Noise)
    """What was measured before."""


def judge(name: str, actual: torch.Tensor, expected: torch.Tensor, oracles: Oracles, tolerance: Tolerance) -> Judgement:
    """Compare one output of the file with the reference's."""
    expected = expected.detach().cpu()
    if actual.dtype != expected.dtype and not (actual.is_floating_point() and expected.is_floating_point()):
        sentence = f"has type {_short(actual.dtype)}, in PyTorch {_short(expected.dtype)}"
        return Judgement(math.inf, Difference(name, "wrong-type", sentence))
    if actual.shape != expected.shape:
        sentence = f"has shape {tuple(actual.shape)}, in PyTorch {tuple(expected.shape)}"
        return Judgement(math.inf, Difference(name, "wrong-shape", sentence))
    if expected.numel() == 0:
        return Judgement(0.0)
    if expected.is_floating_point():
        return _judge_floats(name, actual, expected, oracles, tolerance)
    return _judge_integers(name, actual, expected, oracles)


def _judge_floats(
    name: str, actual: torch.Tensor, expected: torch.Tensor, oracles: Oracles, tolerance: Tolerance
) -> Judgement:
    got, want = actual.double(), expected.double()
    if _special_values(got, want) is not None:
        settled = ~_unsettled(want, oracles)
        if sentence := _special_values(got[settled], want[settled]):
            return Judgement(math.inf, Difference(name, "wrong-values", sentence))
    finite = torch.isfinite(want) & torch.isfinite(got)
    got, want = got[finite], want[finite]
    if not want.numel():
        return Judgement(0.0)
    if tolerance.is_given:
        return _judge_by_user(name, got, want, tolerance)
    if bool(((got - want).abs() < torch.finfo(expected.dtype).tiny).all()):
        return Judgement(0.0)  # a runtime may take numbers so small for zero
    return _judge_by_noise(name, got, want, finite, torch.finfo(expected.dtype).eps, oracles, tolerance.factor)


def _special_values(got: torch.Tensor, want: torch.Tensor) -> str | None:
    """NaN and inf must stand at the same places."""
    for kind, test in (("NaN", torch.isnan), ("inf", torch.isposinf), ("-inf", torch.isneginf)):
        here, there = test(got), test(want)
        if here.sum() != there.sum():
            return f"has {int(here.sum())} {kind}, in PyTorch {int(there.sum())}"
        if not torch.equal(here, there):
            return f"has {kind} at other places than in PyTorch"
    return None


def _unsettled(want: torch.Tensor, oracles: Oracles) -> torch.Tensor:
    """The places at which rounding alone makes a NaN or an inf, or takes one away: only there it is excused."""
    places = torch.zeros_like(want, dtype=torch.bool)
    for run in oracles.jittered(_RUNS_FOR_FLOATS):
        if run.shape == want.shape:
            places |= _kinds(run.double()) != _kinds(want)
    return places


def _kinds(values: torch.Tensor) -> torch.Tensor:
    """A number for each kind of value: finite, NaN, inf, -inf."""
    return torch.isnan(values) + 2 * torch.isposinf(values) + 4 * torch.isneginf(values)


def _judge_by_user(name: str, got: torch.Tensor, want: torch.Tensor, tolerance: Tolerance) -> Judgement:
    error, allowed = (got - want).abs(), tolerance.allowed(want)
    worst = int((error - allowed).argmax())
    ratio = float(error[worst] / allowed[worst]) if allowed[worst] else (math.inf if error[worst] else 0.0)
    if bool((error <= allowed).all()):
        return Judgement(ratio)
    return Judgement(ratio, Difference(name, "wrong-values", _differs(float(error[worst]), float(allowed[worst]))))


def _judge_by_noise(
    name: str,
    got: torch.Tensor,
    want: torch.Tensor,
    finite: torch.Tensor,
    epsilon: float,
    oracles: Oracles,
    factor: float,
) -> Judgement:
    scale = float(want.abs().max())
    floor = epsilon * scale
    distance = float((got - want).abs().max())
    # noise is at least `floor`, and PyTorch within it of the truth: so much is allowed, whatever float64 would say.
    # Where it is half of that, small results are asked for their noise all the same: the ratio is told to the user
    settled = (factor - 1) * floor if want.numel() > _SMALL else (factor / 2 - 1) * floor
    if distance <= settled:
        return Judgement(distance / floor if floor else 0.0)
    usual = scale * oracles.noise.least
    if distance <= factor / 2 * usual:  # with room for less noise here than anywhere else
        return Judgement(distance / usual)
    exact = oracles.exact()
    truth = exact.double()[finite] if exact is not None and exact.shape == finite.shape else None
    if truth is None or not bool(torch.isfinite(truth).all()):
        return _judge_unsettled(name, distance, floor, want, finite, oracles, factor)
    noise = max(float((want - truth).abs().max()), epsilon * float(truth.abs().max()))
    if scale:
        oracles.noise.measured(noise / scale)
    error = float((got - truth).abs().max())
    if error > factor * noise:
        # one sample of rounding may be lucky: a result that is exactly zero has none. Moving every result shows more
        noise = max(noise, _jitter_noise(want, finite, oracles))
    ratio = error / noise if noise else (math.inf if error else 0.0)
    if error <= factor * noise:
        return Judgement(ratio)
    return Judgement(ratio, Difference(name, "wrong-values", _differs(error, factor * noise)))


def _judge_unsettled(
    name: str,
    distance: float,
    floor: float,
    want: torch.Tensor,
    finite: torch.Tensor,
    oracles: Oracles,
    factor: float,
) -> Judgement:
    """No float64 run: the noise is what jittered runs show, or a small part of the largest value."""
    least = _UNSETTLED_FLOOR / FACTOR * float(want.abs().max())
    noise = max(_jitter_noise(want, finite, oracles), floor, least)
    ratio = distance / noise if noise else math.inf
    if distance <= factor * noise:
        return Judgement(ratio)
    return Judgement(ratio, Difference(name, "wrong-values", _differs(distance, factor * noise)))


def _jitter_noise(want: torch.Tensor, finite: torch.Tensor, oracles: Oracles) -> float:
    runs = [run.double() for run in oracles.jittered(_RUNS_FOR_FLOATS) if run.shape == finite.shape]
    return max((float((run[finite] - want).abs().nan_to_num(0.0, 0.0, 0.0).max()) for run in runs), default=0.0)


def _judge_integers(name: str, actual: torch.Tensor, expected: torch.Tensor, oracles: Oracles) -> Judgement:
    wrong = actual != expected
    if not bool(wrong.any()):
        return Judgement(0.0)
    for run in oracles.jittered(_RUNS_FOR_TIES):
        if run.shape == expected.shape:
            wrong &= run == expected
    exact = oracles.exact()
    if exact is not None and exact.shape == expected.shape:
        wrong &= exact == expected
    if not bool(wrong.any()):
        return Judgement(0.0)
    place = tuple(int(i) for i in wrong.nonzero()[0])
    sentence = (
        f"differs in {int(wrong.sum())} of {wrong.numel()} places, "
        f"first at {list(place)}: {actual[place].item()}, in PyTorch {expected[place].item()}"
    )
    return Judgement(math.inf, Difference(name, "wrong-values", sentence))


def _differs(error: float, allowed: float) -> str:
    digits = next((n for n in range(2, 9) if f"{error:.{n}g}" != f"{allowed:.{n}g}"), 9)
    return f"differs by {error:.{digits}g} (allowed {allowed:.{digits}g})"


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
