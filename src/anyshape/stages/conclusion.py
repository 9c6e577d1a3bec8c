"""How an export ends once its strategies were tried: with a file in its place, a narrower one, or a refusal.

A narrower file (`narrow=True`) is only made at the user's wish: the widest declaration for which a file is right, and
what is given up is said. First come the conditions that the trace itself assumed (exact, and the widest); then ranges
cut so that no failing size remains; a dim that cannot vary at all becomes static.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import onnx_ir as ir

from anyshape.conversion.strategies import REPAIRED
from anyshape.declaration.spec import Spec
from anyshape.diagnosis import wording
from anyshape.diagnosis.doubts import doubts
from anyshape.errors import DeclarationError
from anyshape.model.limits import Limit, effective_range
from anyshape.model.survey import Survey
from anyshape.onnxfile.interface import unused_inputs
from anyshape.onnxfile.saving import Stage
from anyshape.results.attempt import Attempt
from anyshape.results.finding import Finding
from anyshape.results.result import Result, Verdict
from anyshape.results.unknown_operators import unknown_operators
from anyshape.results.verification import Verification
from anyshape.sizes import budgets
from anyshape.sizes.conditions import fitting_sizes
from anyshape.sizes.notation import Condition, SizeRange
from anyshape.stages.offers import cut_ranges
from anyshape.stages.strategy_walk import Tried
from anyshape.stages.written_file import write_file
from anyshape.verification.candidate_check import Checked, try_out
from anyshape.verification.frozen_decisions import frozen


@dataclass(frozen=True)
class Conclusion:
    """The result, and the dims to try again without where the user allows a narrower file."""

    result: Result
    pinned: tuple[str, ...] = ()


def conclude(survey: Survey, stage: Stage, tries: Sequence[Tried]) -> Conclusion:
    """What the last try came to; what the others did stays in the result."""
    last, attempts = tries[-1], [tried.attempt for tried in tries]
    if last.checked is not None and last.is_right:
        return _conclude_right(survey, stage, last.checked, attempts)
    if last.unknown and last.candidate is not None:
        # written without a check where the user asked for just that
        if {operator.name for operator in last.unknown} <= set(survey.options.unchecked):
            return Conclusion(write_file(survey, stage, last.candidate, attempts, None, "unchecked"))
        return Conclusion(refuse(survey, attempts, unknown_operators(last.unknown, survey.home)))
    lacking = next((tried.unknown for tried in tries if tried.unknown), ())
    if lacking and not any(tried.checked for tried in tries):
        return Conclusion(refuse(survey, attempts, unknown_operators(lacking, survey.home)))
    return _conclude_wrong(survey, stage, tries)


def _conclude_right(survey: Survey, stage: Stage, checked: Checked, attempts: Sequence[Attempt]) -> Conclusion:
    """The file is right; is the model what its author meant, and is it all that the user declared?

    An error is refused, a warning is shown.
    """
    found = doubts(survey, checked.candidate.guards)
    errors = [finding for finding in found if finding.level == "error"]
    if errors:
        dims = sorted({dim for finding in errors for dim in finding.dims}) if survey.options.narrow else ()
        return Conclusion(refuse(survey, attempts, found, checked.verification), tuple(dims))
    limited = limits_against_declaration(survey)
    findings = [*limited, *found]
    if limited and not survey.options.narrow:
        return Conclusion(refuse(survey, attempts, findings, checked.verification))
    verdict: Verdict = "narrowed" if limited or survey.options.given_up else "checked"
    right = checked.candidate, attempts, checked.verification, verdict, findings
    return Conclusion(write_file(survey, stage, *right, judged=checked.judged))


def _conclude_wrong(survey: Survey, stage: Stage, tries: Sequence[Tried]) -> Conclusion:
    """No strategy is right for all that was declared: a refusal, or a narrower file at the user's wish."""
    attempts = [tried.attempt for tried in tries]
    ran = [tried.checked for tried in tries if tried.checked is not None]
    wrong = [checked for checked in ran if checked.verification.failures]
    doubtful = [checked for checked in ran if checked.unsettled]
    findings = explain(survey, attempts, wrong, doubtful)
    refusal = refuse(survey, attempts, findings, (wrong or doubtful)[0].told if wrong or doubtful else None)
    if not survey.options.narrow:
        return Conclusion(refusal)
    telling = most_telling(attempts)
    if telling.outcome == "failed" and telling.pins:
        return Conclusion(refusal, tuple(sorted({pin.dim for pin in telling.pins})))
    for checked in (*doubtful, *wrong):
        if (result := narrowed_file(survey, stage, checked, attempts, findings)) is not None:
            return Conclusion(result)
    return Conclusion(refusal)


def limits_against_declaration(survey: Survey) -> list[Finding]:
    """Limits that exclude sizes which the user wrote, or leave a dim a single size; and failures without a rule."""
    spec, boundaries = survey.request.spec, survey.boundaries
    against = [one for one in boundaries.limits if _leaves_one_size(one, survey) or _excludes_written_sizes(one, spec)]
    findings = [wording.limited_in_pytorch(limit, spec.ranges, survey.home) for limit in against]
    failing = [row for row in boundaries.failures_without_a_rule if _written_dims(row[0], survey)]
    if failing:
        dims = _written_dims(failing[0][0], survey)
        findings.append(wording.failing_in_pytorch(failing, dims, survey.home))
    return findings


def _leaves_one_size(limit: Limit, survey: Survey) -> bool:
    dim, spec = limit.condition.names[0], survey.request.spec
    declared = spec.ranges[dim]
    left = effective_range(declared, survey.boundaries.limits, dim)
    is_one = not left.is_open and len(left) == 1 and (declared.is_open or len(declared) > 1)
    return is_one and len(limit.condition.names) == 1


def _excludes_written_sizes(limit: Limit, spec: Spec) -> bool:
    """Whether the user wrote sizes for which it does not hold, whatever the dims take that were left open."""
    broken, written = limit.breaks_at, [dim for dim in limit.condition.names if dim in spec.explicit]
    if broken is None or not written:
        return False
    ranges = {dim: spec.ranges[dim] for dim in written}
    # an open range ends where the model does: its end was not written
    ends = [[broken[d], r.lo, *([] if r.hi is None else [r.hi])] for d, r in ranges.items()]
    corners = (dict(zip(written, sizes, strict=True)) for sizes in itertools.product(*ends))
    return any(not _fits(limit.condition, spec, corner, broken) for corner in corners)


def _fits(condition: Condition, spec: Spec, corner: Mapping[str, int], start: Mapping[str, int]) -> bool:
    """Whether a condition holds somewhere with these dims at these sizes; a corner that was not declared is none."""
    ranges = {**spec.ranges, **{dim: SizeRange(size, size) for dim, size in corner.items()}}
    try:
        declared = fitting_sizes({**start, **corner}, ranges, spec.where)
    except DeclarationError:
        return True
    try:
        fitting_sizes(declared, ranges, (*spec.where, condition))
    except DeclarationError:
        return False
    return True


def _written_dims(sizes: Mapping[str, int], survey: Survey) -> tuple[str, ...]:
    """The dims that make a size fail, if the user wrote the sizes of all of them; else none."""
    base, spec = survey.boundaries.base, survey.request.spec
    moved = tuple(dim for dim in spec.dims if sizes[dim] != base[dim])
    return moved if set(moved) <= set(spec.explicit) else ()


def most_telling(attempts: Sequence[Attempt]) -> Attempt:
    """The plain try, or the one with repairs where that got as far: what a repair solves is no cause."""
    plain, *others = attempts
    for attempt in others:
        if attempt.strategy == REPAIRED and (attempt.pins or attempt.outcome == "wrong"):
            return attempt
    return plain


def explain(
    survey: Survey, attempts: Sequence[Attempt], wrong: Sequence[Checked], doubtful: Sequence[Checked] = ()
) -> list[Finding]:
    """One finding per cause: the first wrong file, or what it assumes, or the dims that tracing pinned, or why nothing
    was converted.
    """
    telling = most_telling(attempts)
    for attempt in attempts:
        if (finding := wording.missing_operator(attempt.error, survey.options.runtime, survey.home)) is not None:
            return [finding]
    pinned = wording.pinned_by_export(telling, survey.home)
    decided = wording.decided_by_values(sorted(attempts, key=lambda one: one.strategy != REPAIRED))
    if early := (pinned if telling.outcome == "failed" else []) or decided:
        return early
    at = {(place.path, place.line): place for attempt in attempts for place in attempt.decisions}
    places = list(at.values())  # one way may stop at a part of the expression that another does not follow
    if places or (not wrong and (places := frozen(survey))):
        return wording.frozen_decisions(places, survey.home)
    if wrong:
        first = next((checked for checked in wrong if checked.strategy == telling.strategy), wrong[0])
        assert first.smallest is not None
        guards, lost = (*first.candidate.guards, *first.beyond), unused_inputs(ir.to_proto(first.candidate.model))
        found = wording.wrong_file(first.smallest, first.verification, guards, survey.home, first.where, lost)
        is_half = any(value.dtype == ir.DataType.FLOAT16 for value in first.candidate.model.graph.inputs)
        fails_everywhere = is_half and not first.verification.checks
        return [wording.with_way_around_half(found, first.where) if fails_everywhere else found]
    if doubtful:
        verification = doubtful[0].verification
        return [wording.unsettled(guard, sizes, verification, survey.home) for guard, sizes in doubtful[0].unsettled]
    return pinned or [wording.not_converted(attempts, survey.home)]


def refuse(
    survey: Survey, attempts: Sequence[Attempt], findings: Sequence[Finding], verification: Verification | None = None
) -> Result:
    spec = survey.request.spec
    return Result(
        "refused",
        dims=spec.ranges,
        limits=tuple(str(limit) for limit in survey.boundaries.limits),
        constants=spec.constants,
        attempts=tuple(attempts),
        verification=verification,
        findings=tuple(findings),
        notes=(*survey.notes, *(() if any(one.breaks_at for one in findings) else survey.boundaries.notes)),
        seconds=sum(attempt.seconds for attempt in attempts),
        where=tuple(map(str, spec.where)),
        limits_at=survey.boundaries.places,
        assumptions=() if verification is None else verification.assumptions,
    )


# ---- for less than was declared


def assumed_conditions(verification: Verification, conditions: Sequence[Condition]) -> list[Condition]:
    """The fewest conditions of the trace that hold at every right size and rule out wrong ones, as far as they do."""
    right = [check.sizes for check in verification.checks]
    wrong = [failure.sizes for failure in verification.failures]
    possible = [condition for condition in conditions if all(condition.holds(sizes) for sizes in right)]
    chosen: list[Condition] = []
    while wrong and possible:
        best = max(possible, key=lambda condition: sum(not condition.holds(sizes) for sizes in wrong))
        left = [sizes for sizes in wrong if best.holds(sizes)]
        if len(left) == len(wrong):
            break
        chosen.append(best)
        wrong = left
    return chosen


def narrowed_file(
    survey: Survey, stage: Stage, checked: Checked, attempts: Sequence[Attempt], findings: Sequence[Finding]
) -> Result | None:
    """The widest part of the declaration for which this candidate is right, written; None where there is none."""
    ranges = dict(survey.request.spec.ranges)
    conditions = [guard.condition for guard in checked.candidate.guards if guard.condition is not None]
    attempt = next(a for a in attempts if a.strategy == checked.strategy)
    for _ in range(budgets.NARROWING_ROUNDS):
        assumed = assumed_conditions(checked.verification, conditions)
        assumed += [guard.condition for guard, _ in checked.unsettled if guard.condition is not None]
        if assumed:
            # in a copy: limits of a narrower file are none of the model's, and another candidate starts without them
            limits = [Limit(condition, of_export=True) for condition in assumed]
            survey = replace(survey, boundaries=survey.boundaries.with_limits(limits))
            conditions = [condition for condition in conditions if condition not in assumed]
        else:
            cut = cut_ranges(ranges, checked.verification, survey.traced)
            if cut == ranges:
                return None
            ranges = cut
        checked = try_out(survey, stage, checked.candidate, attempt, ranges)
        if checked.verification.is_right and not checked.unsettled:
            told = [replace(a, outcome="narrowed") if a.strategy == checked.strategy else a for a in attempts]
            return write_file(
                survey, stage, checked.candidate, told, checked.verification, "narrowed", findings, ranges,
                checked.judged,
            )  # fmt: skip
    return None
