"""How long checking may take, and which sizes are too dear for it."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import torch

from anyshape.bench.judgement import FACTOR, Judgement, Noise, Oracles, Tolerance, judge
from anyshape.bench.plan import Plan, choose
from anyshape.declaration.dims import Spec
from anyshape.model.limits import Boundaries, effective_range
from anyshape.model.oracle import Outcome, Reference
from anyshape.onnxfile.interface import Interface, broken_promise
from anyshape.results.verification import Check, Failure, Verification
from anyshape.runtime.session import RuntimeFailureError, Session, runtime_version
from anyshape.sizes.fit import Observation, observed_at
from anyshape.sizes.notation import Sizes

_BYTES_PER_ELEMENT = 32
_SMALL = 2**15
"""Elements of input up to which a size is simply run: there overheads cost more than what they carry."""


class Budget:
    """Seconds for checking, and what a size is predicted to cost."""

    def __init__(self, seconds: float, memory: int | None = None) -> None:
        self.seconds = seconds
        self._start = time.monotonic()
        self._memory = memory
        self._measured: list[tuple[int, float]] = []

    @property
    def remaining(self) -> float:
        return self.seconds - (time.monotonic() - self._start)

    def measured(self, volume: int, seconds: float) -> None:
        self._measured.append((volume, seconds))

    def is_cheap(self, volume: int) -> bool:
        """Whether a size of this volume may be run to learn from, and teaches something new."""
        return self.remaining > 0 and volume <= _SMALL and all(volume > 4 * known for known, _ in self._measured)

    def refuses(self, volume: int, largest_result: int) -> str | None:
        """Why a size of this volume is not run, or None."""
        if self.remaining <= 0:
            return "the budget was used up"
        if self._memory and volume * _BYTES_PER_ELEMENT > self._memory:
            return "predicted to need more memory than there is"
        if self._measured and volume > _SMALL:
            base, seconds = max(self._measured)
            growth = max(volume / max(base, 1), 0.0)
            if growth > 1 and seconds * growth**2 > self.remaining:
                return "predicted to take longer than the budget"
            if self._memory and largest_result * max(growth, 1.0) ** 2 > self._memory:
                return "predicted to need more memory than there is"
        return None


_SECOND_CONTENT_EVERY = 3
_SECOND_CONTENT_UP_TO = 4
"""Times the volume of the traced call: what other values show, they show at moderate sizes."""
_SMALL_VOLUME = 2**14
"""Elements of a call that costs little, whatever the traced one has."""
_ENOUGH_WRONG = 3
_ALWAYS_RUN = 3
"""The first sizes of a plan run whatever the budget says: without them nothing was checked."""


@dataclass
class _Progress:
    checks: list[Check] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    invalid: list[Sizes] = field(default_factory=list)
    skipped: list[tuple[Sizes, str]] = field(default_factory=list)
    observations: list[Observation] = field(default_factory=list)


@dataclass(frozen=True)
class Checker:
    """A loaded file beside its reference: what is needed to judge one size."""

    session: Session
    interface: Interface
    reference: Reference
    leaves: tuple[str, ...]
    """The leaf that each input of the file takes, in the file's order."""
    tolerance: Tolerance = field(default_factory=Tolerance)
    computed_in: torch.dtype | None = None
    noises: defaultdict[str, Noise] = field(default_factory=partial(defaultdict, Noise))
    """What was measured of each output's rounding."""

    def judge(self, outcome: Outcome) -> Check | Failure:
        """The file against the module on one call; where PyTorch has two answers, either will do."""
        result = self._judge(outcome)
        if isinstance(result, Failure) and (other := self.reference.with_gradients(outcome)) is not None:
            second = self._judge(other)
            return result if isinstance(second, Failure) else second
        return result

    def _judge(self, outcome: Outcome) -> Check | Failure:
        def fail(rule: str, output: str | None, sentence: str) -> Failure:
            return Failure(dict(outcome.sizes), outcome.content, rule, output, sentence)

        feeds = self.feeds(outcome.leaves)
        try:
            results = self.session.run(feeds)
        except RuntimeFailureError as failure:
            return fail("runtime-error", None, f"fails in ONNX Runtime: {failure}")
        if len(results) != len(outcome.outputs):
            return fail("wrong-shape", None, f"has {len(results)} outputs, PyTorch {len(outcome.outputs)}")
        if odd := [r for r in results if not isinstance(r, np.ndarray) or r.dtype.kind not in "fiub"]:
            return fail("wrong-type", None, f"has an output that is no tensor of numbers: {type(odd[0]).__name__}")
        judgement = self._worst(outcome, [torch.from_numpy(np.asarray(r)) for r in results])
        if judgement.difference is not None:
            difference = judgement.difference
            return fail(difference.kind, difference.output, f"`{difference.output}` {difference.sentence}")
        shapes = {name: tuple(feed.shape) for name, feed in feeds.items()}
        if promise := broken_promise(self.interface, shapes, [r.shape for r in results]):
            return fail("mislabelled-dim", promise[0], f"`{promise[0]}` {promise[1]}")
        return Check(dict(outcome.sizes), outcome.content, judgement.ratio, outcome.gradients)

    def feeds(self, leaves: Mapping[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
        ports = zip(self.interface.inputs, self.leaves, strict=True)
        return {port.name: as_numpy(leaves[leaf], port.dtype) for port, leaf in ports}

    def _worst(self, outcome: Outcome, results: Sequence[torch.Tensor]) -> Judgement:
        expected = outcome.outputs
        if self.computed_in is not None:
            expected = self.reference.computed_in(self.computed_in, outcome) or expected
        runs = _Lazy(self.reference, outcome)
        worst = Judgement(0.0)
        for index, (port, result, wanted) in enumerate(zip(self.interface.outputs, results, expected, strict=True)):
            oracles = Oracles(partial(runs.exact, index), partial(runs.jittered, index), self.noises[port.name])
            judgement = judge(port.name, result, wanted, oracles, self.tolerance)
            if judgement.difference is not None:
                return judgement
            worst = max(worst, judgement, key=lambda j: j.ratio)
        return worst


class _Lazy:
    """Further runs of the reference for one call, each made once and only when asked for."""

    def __init__(self, reference: Reference, outcome: Outcome) -> None:
        self._reference, self._outcome = reference, outcome
        self._exact: tuple[torch.Tensor, ...] | None = None
        self._jittered: list[tuple[torch.Tensor, ...]] = []
        self._asked = False

    def exact(self, index: int) -> torch.Tensor | None:
        if not self._asked:
            self._asked = True
            self._exact = self._reference.exact(self._outcome)
        return None if self._exact is None else self._exact[index].cpu()

    def jittered(self, index: int, count: int) -> list[torch.Tensor]:
        if len(self._jittered) < count:
            self._jittered += self._reference.jittered(self._outcome, range(len(self._jittered), count))
        return [run[index].cpu() for run in self._jittered[:count]]


_FOURIER = {"DFT", "STFT"}


def tolerance_for(operators: Iterable[str], tolerance: Tolerance) -> Tolerance:
    """ONNX Runtime's Fourier transform is a plain sum of products: it rounds about ten times more than PyTorch's."""
    return replace(tolerance, factor=8 * FACTOR) if _FOURIER & set(operators) else tolerance


def as_numpy(value: Any, dtype: str) -> np.ndarray[Any, Any]:
    """A leaf as the runtime takes it."""
    if not isinstance(value, torch.Tensor):
        return np.asarray(value, dtype=np.dtype(dtype))
    value = value.detach().cpu()
    if value.dtype == torch.bfloat16:
        value = value.float()
    array: np.ndarray[Any, Any] = value.contiguous().numpy()
    return array if str(array.dtype) == dtype or dtype == "bfloat16" else array.astype(np.dtype(dtype))


def volume(spec: Spec, leaves: Mapping[str, Any], sizes: Mapping[str, int]) -> int:
    """The number of elements of all inputs at these sizes: what a cost is predicted from."""
    total = 1
    for name in spec.axes:
        count = 1
        for n in spec.shape(name, sizes, tuple(leaves[name].shape)):
            count *= max(n, 1)
        total += count
    return total


def verify(
    checker: Checker,
    plan: Plan,
    boundaries: Boundaries,
    budget: Budget,
) -> Verification:
    """Run the plan until it ends, the budget ends or enough sizes were wrong to say so."""
    start = time.monotonic()
    progress = _Progress()
    queue = choose(plan)
    done: set[tuple[int, ...]] = set()
    has_second_chance = True
    while queue or has_second_chance:
        if not queue:
            has_second_chance, queue = False, _too_dear_at_first(progress, boundaries, done)
            continue
        sizes = queue.pop(0)
        key = tuple(sizes.values())
        if key in done:
            continue
        done.add(key)
        known = len(boundaries.limits)
        _run_size(checker, boundaries, budget, sizes, len(done), progress)
        if len(progress.failures) >= _ENOUGH_WRONG:
            break
        if len(boundaries.limits) != known:
            # the model's limits are narrower than thought: choose again inside them, ends included
            plan = _inside(plan, boundaries)
            queue = [s for s in choose(plan) if tuple(s.values()) not in done]
    return Verification(
        tuple(progress.checks),
        tuple(progress.failures),
        tuple(progress.invalid),
        tuple(progress.skipped),
        tuple(progress.observations),
        time.monotonic() - start,
        runtime_version(),
        1.0 if checker.tolerance.is_given else checker.tolerance.factor,
        "the tolerance in use" if checker.tolerance.is_given else "the model's own rounding noise",
        str(checker.computed_in).removeprefix("torch.") if checker.computed_in else None,
    )


def _too_dear_at_first(progress: _Progress, boundaries: Boundaries, done: set[tuple[int, ...]]) -> list[Sizes]:
    """What was skipped, to ask again now that larger sizes were timed: among it are the ends of all ranges at once."""
    skipped = [sizes for sizes, _ in progress.skipped if boundaries.holds(sizes)]
    progress.skipped = []
    done.difference_update(tuple(sizes.values()) for sizes in skipped)
    return skipped


def _inside(plan: Plan, boundaries: Boundaries) -> Plan:
    box = {dim: effective_range(declared, boundaries.limits, dim) for dim, declared in plan.box.items()}
    return replace(plan, box=box)


def _run_size(
    checker: Checker, boundaries: Boundaries, budget: Budget, sizes: Sizes, count: int, progress: _Progress
) -> None:
    reference = checker.reference
    size_volume = _weight(reference, sizes, boundaries.base)
    reason = budget.refuses(size_volume, reference.largest_result)
    if reason is not None and _calibrate(reference, budget, boundaries, sizes):
        reason = budget.refuses(size_volume, reference.largest_result)
    if reason is not None and count > _ALWAYS_RUN:
        progress.skipped.append((sizes, reason))
        return
    started = time.monotonic()
    contents = (
        (0, 1) if count % _SECOND_CONTENT_EVERY == 1 and _is_moderate(reference, sizes, boundaries.base) else (0,)
    )
    for content in contents:
        outcome = reference.run(sizes, content)
        if not outcome.runs:
            progress.invalid.append(sizes)
            boundaries.explain(sizes)
            return
        progress.observations.append(observed_at(sizes, outcome.outputs))
        result = checker.judge(outcome)
        if isinstance(result, Failure):
            progress.failures.append(result)
            break
        progress.checks.append(result)
    budget.measured(size_volume, time.monotonic() - started)


def _is_moderate(reference: Reference, sizes: Sizes, base: Mapping[str, int]) -> bool:
    spec, leaves = reference.spec, reference.signature.values
    return volume(spec, leaves, sizes) <= max(_SMALL_VOLUME, _SECOND_CONTENT_UP_TO * volume(spec, leaves, base))


def _weight(reference: Reference, sizes: Sizes, base: Mapping[str, int]) -> int:
    """The volume of a call, or what it would be if all dims had grown as much as the one that grew the most."""
    leaves = reference.signature.values
    growth = max((size / max(base[dim], 1) for dim, size in sizes.items()), default=1.0)
    return max(volume(reference.spec, leaves, sizes), int(volume(reference.spec, leaves, base) * growth))


def _calibrate(reference: Reference, budget: Budget, boundaries: Boundaries, sizes: Sizes) -> bool:
    """Time the module halfway to a size that seems too dear: small runs are mostly overhead, and tell little."""
    halfway = {d: math.isqrt(max(size, 1) * max(boundaries.base[d], 1)) for d, size in sizes.items()}
    middle = boundaries.admit(halfway)
    if middle is None:
        return False
    middle_volume = _weight(reference, middle, boundaries.base)
    if not budget.is_cheap(middle_volume):
        return False
    started = time.monotonic()
    reference.run(middle)
    budget.measured(middle_volume, time.monotonic() - started)
    return True


def smallest_failure(checker: Checker, failures: Sequence[Failure], plan: Plan, budget: Budget) -> Failure:
    """Shrink a failing size as far as the budget lets: the smallest one says the most."""
    best = min(failures, key=lambda f: (sum(f.sizes.values()), f.content))
    while (smaller := _shrunk(checker, best, plan, budget)) is not None:
        best = smaller
    return best


def _shrunk(checker: Checker, failure: Failure, plan: Plan, budget: Budget) -> Failure | None:
    """The same failure with one dim smaller, or None."""
    for dim, box in plan.box.items():
        for size in _smaller(box.lo, failure.sizes[dim]):
            if size not in box or budget.remaining <= 0:
                continue
            admitted = plan.admit({**failure.sizes, dim: size})
            if admitted is None or sum(admitted.values()) >= sum(failure.sizes.values()):
                continue
            outcome = checker.reference.run(admitted, failure.content)
            if outcome.runs and isinstance(found := checker.judge(outcome), Failure):
                return found
    return None


def _smaller(low: int, size: int) -> list[int]:
    steps = {low, low + 1, low + 2, (low + size) // 2, size - 1}
    return sorted(s for s in steps if low <= s < size)
