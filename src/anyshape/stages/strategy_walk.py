"""The walk along the table of strategies: each that applies is converted and checked, until one file is right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import onnx
import onnx_ir as ir

from anyshape.conversion.candidates import Candidate, Conversion, Job, give_names, make_job
from anyshape.conversion.strategies import (
    FORMS,
    LIFTED,
    STRATEGIES,
    TORCHSCRIPT,
    Past,
    Strategy,
    in_form,
    may_be_badly_written,
)
from anyshape.model import oracle as references
from anyshape.model.survey import Survey
from anyshape.onnxfile.graph import every_node, first_input, is_standard
from anyshape.onnxfile.saving import Stage
from anyshape.results.attempt import Attempt, Guard, MadeOfDim, NewerOpsetError
from anyshape.runtime.custom_ops import UnknownOperator
from anyshape.runtime.session import RuntimeFailureError, lacks_double, unrunnable_type
from anyshape.sizes import budgets
from anyshape.sizes.notation import Sizes
from anyshape.source.spans import Span, span_of_node
from anyshape.verification.candidate_check import Checked, Suspicion, UnknownOperatorsError, try_out
from anyshape.verification.frozen_decisions import frozen, frozen_elsewhere, in_words


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

    @property
    def ends_the_walk(self) -> bool:
        """A file that is right needs no other; what the runtime lacks, it lacks in every form."""
        return self.is_right or bool(any(not one.dtype for one in self.unknown) and self.candidate is not None)


def walk_strategies(survey: Survey, stage: Stage) -> list[Tried]:
    """All tries in their order; the last of them ended the walk, if any did."""
    tries: list[Tried] = []
    scripted = survey.request.target.is_scripted
    for strategy in STRATEGIES:
        if scripted and strategy.name != TORCHSCRIPT:
            continue  # the others trace Python code, and freeze what TorchScript decides by itself
        past = Past(tuple(tried.attempt for tried in tries), lambda: bool(frozen(survey)), _calls_of_a_run(survey))
        if not strategy.applies(past) or (strategy.name != TORCHSCRIPT and any(_is_too_old(tried) for tried in tries)):
            continue
        if survey.options.own_translations and strategy.name in (TORCHSCRIPT, LIFTED) and _any_is_wrong(tries):
            continue  # they know nothing of the user's own translations, and would hide that one is wrong
        if reason := _end_of_the_walk(survey, tries):
            tries.append(Tried(Attempt(strategy.name, "skipped", reason)))
            continue
        job = _job_for(survey, strategy, past)
        for tried in _tries_of(survey, stage, strategy, job, tries):
            tries.append(tried)
            if tried.ends_the_walk:
                return tries
    return tries


def _any_is_wrong(tries: Sequence[Tried]) -> bool:
    return any(tried.attempt.outcome == "wrong" for tried in tries)


def _is_too_old(tried: Tried) -> bool:
    """Whether the opset that was asked for is too old for what torch.export gives; TorchScript writes old ones."""
    return isinstance(tried.attempt.error, NewerOpsetError)


def _calls_of_a_run(survey: Survey) -> float:
    return survey.reference.effort(survey.traced).calls


def _end_of_the_walk(survey: Survey, tries: Sequence[Tried]) -> str:
    """Why no further strategy is tried, if so: what was converted, and not how long it took on a busy machine."""
    if sum(tried.attempt.seconds for tried in tries) > budgets.SECONDS_OF_ALL_STRATEGIES:
        return "this machine took more than an hour for those before"
    converted = sum(tried.attempt.outcome != "skipped" for tried in tries) * _calls_of_a_run(survey)
    return "the model is too long for further strategies" if converted > budgets.MOST_CALLS_OF_STRATEGIES else ""


def _job_for(survey: Survey, strategy: Strategy, past: Past) -> Job:
    """At the sizes that the strategy asks for; the numbers in earlier assumptions are where branches part."""
    if (sizes := strategy.sizes(past)) is not None:
        return make_job(survey, survey.reference.run(sizes))
    constants = {number for attempt in past.attempts for guard in attempt.guards for number in guard.constants}
    telling = [sizes for attempt in past.attempts for sizes in attempt.wrong_at]
    return make_job(survey, constants=constants, telling=telling)


def _tries_of(survey: Survey, stage: Stage, strategy: Strategy, job: Job, before: Sequence[Tried]) -> Iterator[Tried]:
    """The strategy itself, and what it made in plainer forms, as long as its file is wrong and its trace may be right.

    `before` grows as the tries are taken, so that each is suspected of what those before it got wrong.
    """
    name = strategy.name
    survey.options.tell(f"converting with {name}")
    tried = _convert_and_check(survey, stage, name, strategy.convert(job), before)
    if tried.attempt.outcome == "skipped":
        return  # it would have done what was done before
    yield tried
    for form in FORMS if strategy.has_forms else ():
        if tried.candidate is None or not may_be_badly_written(tried.attempt) or _end_of_the_walk(survey, before):
            return
        plainer = form.job(job, tried.candidate.model)
        if plainer is not None:
            job, name = plainer, f"{name}, {form.name}"
            survey.options.tell(f"converting with {name}")
            tried = _convert_and_check(survey, stage, name, in_form(strategy, job, name, tried.candidate), before)
            yield tried


def _convert_and_check(
    survey: Survey, stage: Stage, name: str, conversion: Conversion, before: Sequence[Tried]
) -> Tried:
    """What a strategy made, checked: how the attempt ended."""
    candidate, attempt = conversion
    if candidate is None:
        return Tried(attempt)
    if places := list(candidate.texts) if candidate.records_guards else frozen(survey):
        return Tried(_freezing_attempt(attempt, places))
    if (count := len(candidate.model.graph.outputs)) != len(survey.first.outputs):
        reason = f"returns {count} outputs, and {len(survey.first.outputs)} at other sizes"
        return Tried(replace(attempt, outcome="failed", reason=reason))
    try:
        give_names(survey, candidate)
        survey.boundaries.suggest(guard.condition for guard in candidate.guards if guard.condition is not None)
        survey.options.tell(f"checking what {name} made")
        checked = try_out(survey, stage, candidate, attempt, suspicion=_suspicion(before))
    except (UnknownOperatorsError, NewerOpsetError) as error:
        failed = replace(attempt, outcome="failed", reason=str(error), error=error)
        unknown = tuple(error.operators) if isinstance(error, UnknownOperatorsError) else ()
        return Tried(failed, candidate if unknown else None, unknown=unknown)
    except RuntimeFailureError as failure:
        of_type = unrunnable_type(onnx.load(stage.path, load_external_data=False), failure)
        reason = str(of_type) if of_type is not None else f"ONNX Runtime does not load it: {failure}"
        lacking = _without_double(candidate.model)
        return Tried(replace(attempt, outcome="failed", reason=reason, error=failure), candidate, unknown=lacking)
    return _judged_try(survey, attempt, checked)


def _without_double(model: ir.Model) -> tuple[UnknownOperator, ...]:
    """Operators of a file in float64 that the runtime has in float32 only, each at the line of its first node."""
    double = ir.DataType.DOUBLE
    if all(value.dtype != double for value in (*model.graph.inputs, *model.graph.initializers.values())):
        return ()
    plain = [node for node in every_node(model.graph) if is_standard(node) and len(node.inputs) == 1]
    # what a rewrite has made has no type yet
    found = {node.op_type: node for node in reversed(plain) if first_input(node).dtype in (double, None)}
    return tuple(
        UnknownOperator(name, (), span_of_node(ir.to_proto(node)), "float64")
        for name, node in reversed(found.items())
        if lacks_double(name)
    )


def _suspicion(tries: Sequence[Tried]) -> Suspicion:
    """What the tries so far taught about where files go wrong."""
    paths = tuple(tried.attempt.guards for tried in tries if tried.attempt.guards)
    pins = [pin for tried in tries for pin in tried.attempt.pins]
    numbers = [MadeOfDim("number", pin.dim, pin.span, pin.literals) for pin in pins]
    is_recorded = bool(numbers) or any(tried.candidate is not None for tried in tries)
    made = [one for tried in tries for one in tried.attempt.made if not (is_recorded and one.what == "use")]
    return Suspicion(paths, tuple(sizes for tried in tries for sizes in tried.attempt.wrong_at), (*numbers, *made))


def _judged_try(survey: Survey, attempt: Attempt, checked: Checked) -> Tried:
    """How the attempt ended, now that its file was run."""
    candidate, verification = checked.candidate, checked.verification
    attempt = replace(
        attempt, wrong_at=tuple(failure.sizes for failure in verification.failures), ran_right=verification.is_right
    )
    if not verification.is_right:
        return Tried(replace(attempt, outcome="wrong", reason=_wrong_reason(checked)), candidate, checked)
    if unsettled := checked.unsettled:
        return Tried(replace(attempt, outcome="failed", reason=_unsettled_reason(*unsettled[0])), candidate, checked)
    found = frozen_elsewhere(survey, checked)
    if found.decisions:
        return Tried(_freezing_attempt(attempt, found.decisions), candidate, checked)
    told = replace(checked, verification=replace(verification, notes=(*verification.notes, *found.notes)))
    return Tried(replace(attempt, outcome="checked"), candidate, told)


def _freezing_attempt(attempt: Attempt, places: Sequence[Span]) -> Attempt:
    reason = f"would freeze a decision at {in_words(places)}"
    return replace(attempt, outcome="failed", reason=reason, decisions=tuple(places))


def _unsettled_reason(guard: Guard, sizes: Sizes) -> str:
    return f"assumes `{guard.text}`, and {references.describe(sizes)} was not run"


def _wrong_reason(checked: Checked) -> str:
    failure = checked.smallest
    if failure is None:
        return "no size could be run"
    where = f" at {references.describe(failure.sizes)}" if failure.sizes else ""
    return f"{failure.sentence}{where}"
