"""The strategies in their order, each tried and judged, until the file of one is right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from anyshape.conversion.candidates import Candidate, Strategy, Try
from anyshape.conversion.strategies import CONTROLLED, ELSEWHERE, IN_FULL, LIFTED, STRATEGIES, elsewhere, in_full
from anyshape.diagnosis import doubts
from anyshape.model import oracle as references
from anyshape.model.limits import Limit
from anyshape.model.survey import Ground
from anyshape.onnxfile.saving import Stage
from anyshape.results.attempt import Attempt, hold
from anyshape.results.finding import Finding
from anyshape.results.result import Result
from anyshape.results.unknown_operators import unknown_operators
from anyshape.runtime.custom_ops import UnknownOperator
from anyshape.runtime.session import RuntimeFailureError
from anyshape.stages.conclusion import accept, explain, most_telling, refuse, write
from anyshape.stages.narrowing import assumed_conditions, cut_ranges
from anyshape.verification.candidate_check import Checked, Suspicion, UnknownOperatorsError, make_job, try_out
from anyshape.verification.frozen_decisions import frozen, frozen_elsewhere


@dataclass(frozen=True)
class Tried:
    """One strategy's try, as far as it came."""

    attempt: Attempt
    candidate: Candidate | None = None
    checked: Checked | None = None
    unknown: tuple[UnknownOperator, ...] = ()
    """Operators that ONNX Runtime does not have."""

    @property
    def is_right(self) -> bool:
        return self.attempt.outcome == "checked"


_SECONDS_FOR_STRATEGIES = 400.0
"""A healthy model needs one strategy; whoever waits for a refusal should not wait for hours."""


def try_strategies(ground: Ground, stage: Stage) -> tuple[Result, Sequence[str]]:
    """The first strategy whose file is right wins; what the others did stays in the result.

    With the result come the dims to try again without, where the user allows a narrower file.
    """
    tries: list[Tried] = []
    queue: list[tuple[str, Try]] = [
        (name, partial(_run_strategy, ground, strategy, tries)) for name, strategy in STRATEGIES
    ]
    while queue:
        if queue[0][0] == CONTROLLED and (other := _at_other_sizes(ground, tries)) is not None:
            queue.insert(0, other)
        name, run = queue.pop(0)
        if name == LIFTED and not _may_be_lifted(ground, tries):
            continue
        tried = _try(ground, stage, name, run, _suspicion(tries))
        if tried.attempt.outcome == "skipped":
            continue  # it would have done what was done before
        tries.append(tried)
        attempts = [one.attempt for one in tries]
        if tried.checked is not None and tried.is_right:
            return _end(ground, stage, tried.checked, attempts)
        if tried.unknown and tried.candidate is not None:
            return _with_unknown_operators(ground, stage, tried, attempts), ()
        if tried.attempt.copied and _may_be_badly_written(tried):
            queue.insert(0, (IN_FULL, partial(_run_strategy, ground, in_full, tries)))
        if tried.candidate is not None and tried.candidate.simpler is not None and _may_be_badly_written(tried):
            queue.insert(0, (f"{name} in simpler operators", tried.candidate.simpler))
        if sum(one.seconds for one in attempts) > _SECONDS_FOR_STRATEGIES:
            tries += [
                Tried(Attempt(left, "skipped", "the time for further strategies was used up")) for left, _ in queue
            ]
            break
    return _give_up(ground, stage, tries)


def _end(ground: Ground, stage: Stage, checked: Checked, attempts: Sequence[Attempt]) -> tuple[Result, Sequence[str]]:
    """The file is right; is the model what its author meant? An error is refused, a warning is shown."""
    found = doubts.doubts(ground, checked.candidate.guards)
    errors = [finding for finding in found if finding.level == "error"]
    if errors:
        dims = sorted({dim for finding in errors for dim in finding.dims}) if ground.wishes.narrow else ()
        return refuse(ground, attempts, found, checked.verification), dims
    return accept(ground, stage, checked, attempts, found), ()


def _run_strategy(ground: Ground, strategy: Strategy, tries: Sequence[Tried]) -> tuple[Candidate | None, Attempt]:
    """The numbers in earlier assumptions are where branches part."""
    constants = {number for tried in tries for guard in tried.attempt.guards for number in guard.constants}
    return strategy(make_job(ground, constants=constants))


_SECONDS_FOR_OTHER_SIZES = 30.0


def _at_other_sizes(ground: Ground, tries: Sequence[Tried]) -> tuple[str, Try] | None:
    """A trace where a file was wrong because it assumed something there: often one path of a branch is right
    everywhere, as padding by nothing is.
    """
    wrong = [tried for tried in tries if _breaks_assumptions(tried)]
    was_tried = any(tried.attempt.strategy == ELSEWHERE for tried in tries)
    if was_tried or not wrong or wrong[-1].attempt.seconds > _SECONDS_FOR_OTHER_SIZES:
        return None
    possible = [sizes for sizes in _failing_sizes(wrong[-1]) if not hold(wrong[-1].attempt.guards, sizes)]
    sizes = min(possible, key=lambda sizes: sum(sizes.values()))
    return ELSEWHERE, partial(elsewhere, make_job(ground, ground.reference.run(sizes)))


def _breaks_assumptions(tried: Tried) -> bool:
    """Whether the file is wrong at sizes at which an assumption of its trace does not hold."""
    return any(not hold(tried.attempt.guards, sizes) for sizes in _failing_sizes(tried))


def _may_be_badly_written(tried: Tried) -> bool:
    """Whether the trace may be right although the file is not; a file that is right is no better in another form."""
    is_right = tried.checked is not None and tried.checked.verification.is_right
    return not is_right and not _breaks_assumptions(tried)


def _failing_sizes(tried: Tried) -> list[Mapping[str, int]]:
    return [] if tried.checked is None else [failure.sizes for failure in tried.checked.verification.failures]


_SECONDS_TO_LIFT = 20.0


def _may_be_lifted(ground: Ground, tries: Sequence[Tried]) -> bool:
    """Several static exports take several times as long as one, and freeze every decision: on sizes and on values."""
    fastest = min((tried.attempt.seconds for tried in tries), default=0.0)
    decides = any(_breaks_assumptions(tried) for tried in tries)
    return fastest <= _SECONDS_TO_LIFT and not decides and not frozen(ground)


def _suspicion(tries: Sequence[Tried]) -> Suspicion:
    """What the tries so far taught about where files go wrong."""
    guards = tuple(guard for tried in tries for guard in tried.attempt.guards)
    wrong = [failure.sizes for tried in tries if tried.checked for failure in tried.checked.verification.failures]
    return Suspicion(guards, tuple(wrong))


def _try(ground: Ground, stage: Stage, name: str, run: Try, suspicion: Suspicion) -> Tried:
    """Convert and check by one strategy."""
    ground.wishes.tell(f"converting with {name}")
    candidate, attempt = run()
    ground.reference.put_back()
    if candidate is None:
        return Tried(attempt)
    if not candidate.records_guards and (places := frozen(ground)):
        return Tried(replace(attempt, outcome="failed", reason=f"would freeze a decision at {places}"))
    if (count := len(candidate.model.graph.outputs)) != len(ground.first.outputs):
        reason = f"returns {count} outputs, and {len(ground.first.outputs)} at other sizes"
        return Tried(replace(attempt, outcome="failed", reason=reason))
    ground.boundaries.suggest(guard.condition for guard in candidate.guards if guard.condition is not None)
    ground.wishes.tell(f"checking what {name} made")
    try:
        checked = try_out(ground, stage, candidate, attempt, suspicion=suspicion)
    except UnknownOperatorsError as error:
        failed = replace(attempt, outcome="failed", reason=str(error), error=error)
        return Tried(failed, candidate, unknown=tuple(error.operators))
    except RuntimeFailureError as failure:
        reason = f"ONNX Runtime does not load it: {failure}"
        return Tried(replace(attempt, outcome="failed", reason=reason, error=failure), candidate)
    return Tried(_judged(ground, attempt, checked), candidate, checked)


def _judged(ground: Ground, attempt: Attempt, checked: Checked) -> Attempt:
    """How the attempt ended, now that its file was run."""
    if not checked.verification.is_right:
        return replace(attempt, outcome="wrong", reason=_wrong_reason(checked))
    if places := frozen_elsewhere(ground, checked):
        return replace(attempt, outcome="failed", reason=f"would freeze a decision at {places}")
    return replace(attempt, outcome="checked")


def _with_unknown_operators(ground: Ground, stage: Stage, tried: Tried, attempts: Sequence[Attempt]) -> Result:
    """Written without a check where the user asked for just that."""
    assert tried.candidate is not None
    if {operator.name for operator in tried.unknown} <= set(ground.wishes.unchecked):
        return write(ground, stage, tried.candidate, attempts, None)
    return refuse(ground, attempts, unknown_operators(tried.unknown, ground.home))


def _give_up(ground: Ground, stage: Stage, tries: Sequence[Tried]) -> tuple[Result, Sequence[str]]:
    """No strategy is right for all that was declared: a refusal, or a narrower file at the user's wish."""
    attempts = [tried.attempt for tried in tries]
    wrong = [tried.checked for tried in tries if tried.checked is not None and tried.checked.verification.failures]
    findings = explain(ground, attempts, wrong)
    refusal = refuse(ground, attempts, findings, wrong[0].verification if wrong else None)
    if not ground.wishes.narrow:
        return refusal, ()
    telling = most_telling(attempts)
    if telling.outcome == "failed" and telling.pins:
        return refusal, sorted({pin.dim for pin in telling.pins})
    for checked in wrong:
        if (result := _narrowed(ground, stage, checked, attempts, findings)) is not None:
            return result, ()
    return refusal, ()


_NARROWING_ROUNDS = 6


def _narrowed(
    ground: Ground, stage: Stage, checked: Checked, attempts: Sequence[Attempt], findings: Sequence[Finding]
) -> Result | None:
    """The widest part of the declaration for which this candidate is right, or None."""
    ranges = dict(ground.request.spec.ranges)
    conditions = [guard.condition for guard in checked.candidate.guards if guard.condition is not None]
    for _ in range(_NARROWING_ROUNDS):
        assumed = assumed_conditions(checked.verification, conditions)
        if assumed:
            ground.boundaries.limits += [Limit(condition, of_export=True) for condition in assumed]
            conditions = [condition for condition in conditions if condition not in assumed]
        else:
            cut = cut_ranges(ranges, checked.verification, ground.traced)
            if cut == ranges:
                break
            ranges = cut
        attempt = next(a for a in attempts if a.strategy == checked.strategy)
        checked = try_out(ground, stage, checked.candidate, attempt, ranges)
        if checked.verification.is_right:
            winner = checked.strategy
            told = [replace(a, outcome="narrowed") if a.strategy == winner else a for a in attempts]
            return write(ground, stage, checked.candidate, told, checked.verification, "narrowed", findings, ranges)
    ground.boundaries.limits = [limit for limit in ground.boundaries.limits if not limit.of_export]
    return None


def _wrong_reason(checked: Checked) -> str:
    failure = checked.smallest
    if failure is None:
        return "no size could be run"
    where = f" at {references.describe(failure.sizes)}" if failure.sizes else ""
    return f"{failure.sentence}{where}"
