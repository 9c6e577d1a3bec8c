"""The bench: a file beside its reference, run at every size of a plan and judged at each.

The references are handed in: a model, the static file that a file was made of, or nothing but what the file says of
itself. All values are numpy's. How the references differ in what is asked of them stands in `Rules`, and only there.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Literal, Protocol, TypeVar

import numpy as np

from anyshape.garbage import give_memory_back
from anyshape.onnxfile.contract import RANDOM_VALUES
from anyshape.onnxfile.interface import Interface, broken_promise
from anyshape.results.progress import count_size
from anyshape.results.verification import Check, Failure, Verification
from anyshape.runtime.session import Array, Feeds, RuntimeFailureError, Session, runtime_version
from anyshape.sizes import budgets
from anyshape.sizes.conditions import narrowed_range
from anyshape.sizes.effort import Effort
from anyshape.sizes.fit import Observation, observed_at
from anyshape.sizes.notation import Condition, Sizes
from anyshape.testbench.judgement import MovedRuns, Oracles, Tolerance, judge
from anyshape.testbench.plan import Budget, Plan, available_memory, choose

Judged = Check | Failure

# ---- what is handed in


@dataclass(frozen=True)
class Rules:
    """What is asked of a file beside one kind of reference."""

    always_run: int
    """The first sizes of a plan run whatever the budget says: without them nothing was checked."""
    enough_wrong: int | None = None
    """So many wrong sizes say that a file is wrong; None: all that fail are wanted, to find the rule behind them."""
    has_second_contents: bool = False
    """Whether some sizes are run with other values, too."""
    broken_promise: Literal["mislabelled-dim", "wrong-shape"] = "mislabelled-dim"
    """What it is called when the declared axes are not kept: the labels of a file that was made dynamic were worked out
    from its nodes, so that a run which contradicts them shows that the nodes are wrong."""
    promises_come_first: bool = False
    """Before values: those that are compared are cut out by the declared axes."""
    takes_texts: bool = False
    """Whether outputs may be other than numbers: a file can be compared with a file whatever it gives."""
    measure: str | None = None
    """What errors are counted in; None where values are not compared at all."""


BESIDE_A_MODEL = Rules(always_run=3, enough_wrong=3, has_second_contents=True, measure="the model's own rounding noise")
BESIDE_ITS_STATIC_TWIN = Rules(
    always_run=2, enough_wrong=1, broken_promise="wrong-shape", promises_come_first=True, takes_texts=True,
    measure="the static file's rounding noise",
)  # fmt: skip
BESIDE_A_RANDOM_MODEL = Rules(always_run=3, enough_wrong=3, measure=RANDOM_VALUES)
ALONE = Rules(always_run=4, takes_texts=True)


class BenchRun(Protocol):
    """One call of a reference."""

    @property
    def sizes(self) -> Mapping[str, int]: ...

    @property
    def content(self) -> int:
        """Which of the values that are tried."""

    @property
    def error(self) -> Exception | None:
        """What the reference itself raises there."""

    @property
    def outputs(self) -> Sequence[Any]:
        """Anything with a shape."""

    @property
    def gradients(self) -> bool: ...


@dataclass(frozen=True)
class Expected:
    """What one output is compared with, and how to know its rounding noise."""

    output: int
    values: Array
    noise: Oracles | MovedRuns


Run = TypeVar("Run", bound=BenchRun)


class BenchReference(ABC, Generic[Run]):
    """What a file is held to; what only some references have to say is nothing here."""

    @property
    def is_widened(self) -> bool:
        """Whether a twin of the file is run, in a type that the runtime has kernels for."""
        return False

    @abstractmethod
    def run(self, sizes: Sizes, content: int = 0) -> Run: ...

    @abstractmethod
    def volume(self, sizes: Sizes) -> int:
        """The number of elements of all inputs at these sizes."""

    def effort(self, sizes: Sizes) -> Effort:
        """What one run is predicted to take, from the number of elements alone."""
        volume = self.volume(sizes)
        return Effort(volume * budgets.WORK_OF_AN_INPUT).with_values("inputs", volume)

    def refuses(self, sizes: Sizes) -> str | None:
        """Why no call of these sizes can be made, or None."""

    @abstractmethod
    def inputs(self, run: Run) -> Feeds:
        """What the file takes in this call."""

    @abstractmethod
    def input_shapes(self, run: Run) -> Mapping[str, tuple[int, ...]]: ...

    def make_room(self) -> None:
        """The file is run next: memory that can be had back is given back."""

    def expected(self, run: Run) -> Iterable[Expected]:
        """One for each output whose values are compared."""
        del run
        return ()

    def compared(self, run: Run, index: int, result: Array) -> Array:
        """The part of the file's output that stands beside what is expected."""
        del run, index
        return result

    def broken_promise(self, run: Run, shapes: Sequence[tuple[int, ...]]) -> tuple[str, str] | None:
        """The output that breaks a promise other than its declared axes, and the sentence."""

    def other_answer(self, run: Run) -> Run | None:
        """Another run of the same call that is right just as well."""


class Limits(Protocol):
    """What is known of where the reference runs; it learns while a plan is run."""

    @property
    def base(self) -> Sizes: ...

    @property
    def conditions(self) -> Sequence[Condition]:
        """All that must hold for it to be run."""

    def holds(self, sizes: Mapping[str, int]) -> bool: ...

    def admit(self, sizes: Sizes) -> Sizes | None:
        """The sizes moved inside the limits."""

    def explain(self, sizes: Sizes) -> bool:
        """Look for the limit behind a failing size."""

    def note_run(self, sizes: Sizes) -> None:
        """The reference runs there: a limit that says otherwise is none."""


# ---- one call


@dataclass(frozen=True)
class Checker(Generic[Run]):
    """A loaded file beside its reference: what is needed to judge it."""

    session: Session
    interface: Interface
    reference: BenchReference[Run]
    rules: Rules
    tolerance: Tolerance = field(default_factory=Tolerance)

    def judge(self, run: Run) -> Judged:
        """The file on one call; where the reference has two answers, either will do."""
        result = self._judge_answer(run)
        self._give_back()
        # asked for last: it costs a further run, and most files are right or wrong without it
        if isinstance(result, Failure) and (other := self.reference.other_answer(run)) is not None:
            second = self._judge_answer(other)
            return result if isinstance(second, Failure) else second
        return result

    def _give_back(self) -> None:
        """Beside large weights memory is scarce: what the last step needed is not kept while the next one runs."""
        if self.session.bytes_of_large_weights:
            give_memory_back()

    def _judge_answer(self, run: Run) -> Judged:
        results = self.results(run)
        return results if isinstance(results, Failure) else self.compare(run, results)

    def results(self, run: Run) -> list[Array] | Failure:
        """What the file gives; an error of the runtime is a failure."""
        feeds = self.reference.inputs(run)
        self.reference.make_room()
        try:
            results = self.session.run(feeds)
        except RuntimeFailureError as failure:
            return _failure(run, "runtime-error", None, f"fails in ONNX Runtime: {failure}")
        finally:
            self._give_back()
        return (self._broken_promise(run, results) if self.rules.promises_come_first else None) or results

    def compare(self, run: Run, results: Sequence[Array]) -> Judged:
        """What the file gave beside what the reference says of it."""
        judged = self._compare_values(run, results)
        if isinstance(judged, Failure) or self.rules.promises_come_first:
            return judged
        return self._broken_promise(run, results) or judged

    def _compare_values(self, run: Run, results: Sequence[Array]) -> Judged:
        if not self.rules.takes_texts:
            if len(results) != len(run.outputs):
                return _failure(run, "wrong-shape", None, f"has {len(results)} outputs, PyTorch {len(run.outputs)}")
            if odd := [r for r in results if not isinstance(r, np.ndarray) or r.dtype.kind not in "fiub"]:
                sentence = f"has an output that is no tensor of numbers: {type(odd[0]).__name__}"
                return _failure(run, "wrong-type", None, sentence)
        worst = 0.0
        for wanted in self.reference.expected(run):
            result = self.reference.compared(run, wanted.output, results[wanted.output])
            is_random = self.rules.measure == RANDOM_VALUES
            judgement = judge(result, wanted.values, wanted.noise, self.tolerance, values=not is_random)
            if (difference := judgement.difference) is not None:
                name = self.interface.outputs[wanted.output].name
                return _failure(run, difference.kind, name, f"`{name}` {difference.sentence}")
            worst = max(worst, judgement.ratio)
        return Check(dict(run.sizes), run.content, worst, run.gradients)

    def _broken_promise(self, run: Run, results: Sequence[Array]) -> Failure | None:
        shapes = [tuple(getattr(result, "shape", ())) for result in results]  # a sequence or a map has no shape
        found = broken_promise(self.interface, self.reference.input_shapes(run), shapes)
        found = found or self.reference.broken_promise(run, shapes)
        return None if found is None else _failure(run, self.rules.broken_promise, found[0], f"`{found[0]}` {found[1]}")

    def examine(self, sizes: Sizes, contents: Iterable[int]) -> Examined:
        """The file at one size, with one content after the other until one is wrong."""
        judged: list[Judged] = []
        observations: list[Observation] = []
        for content in contents:
            run = self.reference.run(sizes, content)
            if run.error is not None:
                return Examined(tuple(judged), tuple(observations), is_valid=False)
            observations.append(observed_at(sizes, run.outputs))
            judged.append(self.judge(run))
            if isinstance(judged[-1], Failure):
                break
        return Examined(tuple(judged), tuple(observations))


@dataclass(frozen=True)
class Examined:
    """What became of one size."""

    judged: tuple[Judged, ...]
    observations: tuple[Observation, ...] = ()
    is_valid: bool = True
    """Whether the reference itself runs there."""


def _failure(run: BenchRun, rule: str, output: str | None, sentence: str) -> Failure:
    return Failure(dict(run.sizes), run.content, rule, output, sentence)


def judge_until_wrong(checker: Checker[Run], runs: Iterable[Run]) -> list[Judged]:
    """One call after the other, up to the first that is wrong."""
    judged: list[Judged] = []
    for run in runs:
        judged.append(checker.judge(run))
        if isinstance(judged[-1], Failure):
            break
    return judged


# ---- a plan


@dataclass
class _Progress:
    """What became of a plan so far."""

    judged: list[Judged] = field(default_factory=list)
    invalid: list[Sizes] = field(default_factory=list)
    skipped: list[tuple[Sizes, str]] = field(default_factory=list)
    observations: list[Observation] = field(default_factory=list)
    done: set[tuple[int, ...]] = field(default_factory=set)
    ran: int = 0

    def is_wrong(self, rules: Rules) -> bool:
        """Whether enough was wrong to say so."""
        wrong = sum(isinstance(one, Failure) for one in self.judged)
        return rules.enough_wrong is not None and wrong >= rules.enough_wrong


def verify(checker: Checker[Run], plan: Plan, limits: Limits, budget: Budget) -> Verification:
    """Run the plan until it ends, the budget ends or enough sizes were wrong to say so."""
    start = time.monotonic()
    progress = _Progress()
    given, queue, is_opening = plan, choose(plan, opening=True), True
    while True:
        if not queue and is_opening:
            given = plan = replace(plan, first=(*plan.first, *plan.breaking()))
            queue, is_opening = _sizes_left(plan, progress), False
        if not queue and not (queue := _sizes_not_thought_of(plan, progress)):
            break
        sizes = queue.pop(0)
        key = tuple(sizes.values())
        if key in progress.done:
            continue
        progress.done.add(key)
        known = list(limits.conditions)  # a failing size may teach a limit
        _run_size(checker, limits, budget, sizes, progress)
        count_size(len(progress.done), len(progress.done) + len(queue))
        if progress.is_wrong(checker.rules):
            break
        if list(limits.conditions) != known:
            # the model's limits are others than thought: choose again inside them, ends included
            plan = _plan_inside(given, limits)
            queue = _sizes_left(plan, progress, opening=is_opening)
    verification = replace(
        verification_of(checker, progress.judged, time.monotonic() - start),
        invalid=tuple(progress.invalid),
        skipped=tuple((sizes, reason) for sizes, reason in progress.skipped if limits.holds(sizes)),
        observations=tuple(progress.observations),
    )
    return run_by_default(checker, verification)


_NOT_BY_DEFAULT = "run with weights that are mapped, and never with ONNX Runtime's default options, which pack them"


def run_by_default(checker: Checker[Run], verification: Verification) -> Verification:
    """A right file with large weights once more, at the first size, as users open it; or a note that it was not.

    A twin in a wider type nobody opens.
    """
    size = checker.session.bytes_of_large_weights
    if not size or not verification.is_right or checker.reference.is_widened:
        return verification
    needed = size * budgets.COPIES_OF_PACKED_WEIGHTS
    if size > budgets.MOST_BYTES_TO_PACK or needed > available_memory():
        least = f"{min(needed, budgets.MOST_BYTES_TO_PACK) / 2**30:.1f} GB"
        return replace(verification, notes=(*verification.notes, f"{_NOT_BY_DEFAULT}: that takes more than {least}"))
    first = verification.checks[0]
    run = checker.reference.run(first.sizes, first.content)
    checker.session.rest()
    try:
        judged = replace(checker, session=checker.session.by_default()).judge(run)
    except RuntimeFailureError as failure:
        judged = _failure(run, "runtime-error", None, f"is not loaded: {failure}")
    give_memory_back()
    if isinstance(judged, Check):
        return verification
    wrong = replace(judged, sentence=f"{judged.sentence}, with ONNX Runtime's default options")
    return replace(verification, failures=(wrong,))


def verification_of(checker: Checker[Run], judged: Sequence[Judged], seconds: float) -> Verification:
    """These runs of one file, and what their errors are counted in."""
    verification = Verification(
        tuple(one for one in judged if isinstance(one, Check)),
        tuple(one for one in judged if isinstance(one, Failure)),
        seconds=seconds,
        runtime=runtime_version(),
    )
    measure, tolerance = checker.rules.measure, checker.tolerance
    if measure is None:
        return verification
    if measure == RANDOM_VALUES:
        return replace(verification, measure=measure)
    if tolerance.is_given:
        return replace(verification, factor=1.0, measure="the tolerance in use")
    return replace(verification, factor=tolerance.factor, measure=measure)


def _sizes_not_thought_of(plan: Plan, progress: _Progress) -> list[Sizes]:
    """What the runs so far leave to ask, as long as all are right."""
    right = {tuple(one.sizes.items()): one.sizes for one in progress.judged if isinstance(one, Check)}
    if any(isinstance(one, Failure) for one in progress.judged):
        return []
    further = plan.further(list(right.values()), progress.invalid)
    return [sizes for sizes in further if tuple(sizes.values()) not in progress.done]


def _sizes_left(plan: Plan, progress: _Progress, *, opening: bool = False) -> list[Sizes]:
    return [sizes for sizes in choose(plan, opening=opening) if tuple(sizes.values()) not in progress.done]


def _plan_inside(plan: Plan, limits: Limits) -> Plan:
    conditions = limits.conditions
    return replace(plan, box={dim: narrowed_range(declared, conditions, dim) for dim, declared in plan.box.items()})


def _run_size(checker: Checker[Run], limits: Limits, budget: Budget, sizes: Sizes, progress: _Progress) -> None:
    contents = _contents_for(checker, sizes, limits.base, len(progress.done))
    reason = checker.reference.refuses(sizes)
    if reason is None:
        effort = checker.reference.effort(sizes).times(len(contents))
        reason = budget.refuses(effort) if progress.ran >= checker.rules.always_run else None
    if reason is not None:
        progress.skipped.append((sizes, reason))
        return
    progress.ran += 1
    budget.charge(effort)
    examined = checker.examine(sizes, contents)
    progress.judged += examined.judged
    progress.observations += examined.observations
    if not examined.is_valid:
        progress.invalid.append(sizes)
        limits.explain(sizes)
    elif not any(isinstance(one, Failure) and one.rule == "runtime-error" for one in examined.judged):
        limits.note_run(sizes)  # alone, a file that fails is its own reference


def _contents_for(checker: Checker[Run], sizes: Sizes, base: Sizes, count: int) -> tuple[int, ...]:
    """The first values, and at some sizes others, too."""
    if not checker.rules.has_second_contents or count % budgets.SECOND_CONTENT_EVERY != 1:
        return (0,)
    moderate = max(budgets.SMALL_VOLUME, budgets.SECOND_CONTENT_UP_TO * checker.reference.volume(base))
    return (0, 1) if checker.reference.volume(sizes) <= moderate else (0,)


# ---- the smallest failing size


def smallest_failure(checker: Checker[Run], failures: Sequence[Failure], plan: Plan, budget: Budget) -> Failure:
    """Shrink a failing size as far as the budget lets: the smallest one says the most."""
    best = min(failures, key=lambda f: (sum(f.sizes.values()), f.content))
    while (smaller := _smaller_failure(checker, best, plan, budget)) is not None:
        best = smaller
    return best


def _smaller_failure(checker: Checker[Run], failure: Failure, plan: Plan, budget: Budget) -> Failure | None:
    """The same failure with one dim smaller, or None."""
    for dim, box in plan.box.items():
        for size in _smaller_sizes(box.lo, failure.sizes[dim]):
            if size not in box or budget.remaining <= 0:
                continue
            admitted = plan.admit({**failure.sizes, dim: size})
            # a dim that is tied to this one may have moved the other way: then nothing is smaller
            if admitted is None or sum(admitted.values()) >= sum(failure.sizes.values()):
                continue
            budget.charge(checker.reference.effort(admitted))
            run = checker.reference.run(admitted, failure.content)
            if run.error is None and isinstance(found := checker.judge(run), Failure):
                return found
    return None


def _smaller_sizes(low: int, size: int) -> list[int]:
    steps = {low, low + 1, low + 2, (low + size) // 2, size - 1}
    return sorted(s for s in steps if low <= s < size)
