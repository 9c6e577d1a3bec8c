"""`export`: declare -> trace -> translate -> verify -> save. The stages in order; read this first.

A converter's success is never trusted: a file is written to a temporary folder, checked there against the untouched
module at sizes of our own choosing, and only then put in its place.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from anyshape._torch import capture
from anyshape._torch.state import untouched
from anyshape.conversion.candidates import Attempt, Candidate, Strategy, Try
from anyshape.conversion.strategies import CONTROLLED, ELSEWHERE, STRATEGIES, elsewhere
from anyshape.conversion.user_translations import translations
from anyshape.declaration.options import check_options
from anyshape.declaration.requests import Request, understand
from anyshape.declaration.targets import training_parts
from anyshape.declaration.torch_arguments import notes_on
from anyshape.diagnosis import doubts, rules
from anyshape.diagnosis.edits import Edit, usable_edits
from anyshape.diagnosis.findings import Finding
from anyshape.diagnosis.trying import edited
from anyshape.diagnosis.unknown import unknown_operators
from anyshape.ending import accept, explain, most_telling, refuse, write
from anyshape.errors import DeclarationError, ExportError
from anyshape.narrowing import assumed_conditions, cut_ranges, without_dims
from anyshape.onnxfile.saving import Stage, check_destination, staged
from anyshape.result import Result
from anyshape.survey import Ground, Progress, Wishes, survey
from anyshape.trial import Checked, Suspicion, UnknownOperatorsError, make_job, try_out
from anyshape.verification import reference as references
from anyshape.verification.comparison import Tolerance
from anyshape.verification.custom_ops import UnknownOperator, understand_custom_ops
from anyshape.verification.limits import Limit
from anyshape.verification.opsets import choose_opset
from anyshape.verification.runtime import RuntimeFailureError
from anyshape.verification.sizes import choose_tier


def export(
    model: Any,
    args: Any = (),
    f: str | os.PathLike[str] | None = None,
    *,
    kwargs: Mapping[str, Any] | None = None,
    dims: Mapping[str, Any] | None = None,
    sizes: Mapping[str, Any] | None = None,
    make_inputs: Callable[..., Any] | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    dynamic_axes: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    opset_version: int | None = None,
    target: str | None = None,
    external_data: bool | None = None,
    custom_translation_table: Mapping[Any, Any] | None = None,
    custom_ops: Sequence[Any] | Mapping[str, Callable[..., Any]] = (),
    metadata: Mapping[str, str] | None = None,
    narrow: bool = False,
    repair: str | None = None,
    unchecked: Sequence[str] = (),
    dtype: Any = None,
    atol: float | None = None,
    rtol: float | None = None,
    budget: float | None = None,
    quick: bool = False,
    thorough: bool = False,
    seed: int = 0,
    providers: Sequence[str] | None = None,
    progress: Progress | None = None,
    **torch_arguments: Any,
) -> Result:
    """Convert a model to an ONNX file that serves every declared size, or raise ExportError and write nothing.

    `dims` says which axes vary (`{"tokens": "batch seq"}`), `sizes` how far (`{"seq": "1..512"}`). `f=None` writes
    nothing. `repair="edits"` converts the model with the safe edits of its findings in place, in memory alone. The
    arguments of `torch.onnx.export` are understood under their own names.
    """
    capture.require_torch()
    notes = notes_on(torch_arguments)
    check_options(
        atol=atol, rtol=rtol, budget=budget, seed=seed, make_inputs=make_inputs, progress=progress, target=target,
        metadata=metadata, unchecked=unchecked, providers=providers, repair=repair,
    )  # fmt: skip
    destination = check_destination(f)
    request = understand(
        model, args, kwargs, dims=dims, sizes=sizes, make_inputs=make_inputs, dynamic_axes=dynamic_axes,
        dynamic_shapes=dynamic_shapes, input_names=input_names, output_names=output_names, dtype=dtype,
    )  # fmt: skip
    wishes = Wishes(
        destination=destination,
        opset=choose_opset(opset_version, target),
        opset_is_fixed=opset_version is not None,
        external_data=external_data,
        metadata=check_metadata(metadata),
        narrow=narrow,
        may_edit=repair == "edits",
        unchecked=tuple(unchecked),
        tolerance=Tolerance(atol, rtol),
        seconds=budget,
        tier=choose_tier(quick=quick, thorough=thorough),
        seed=seed,
        providers=providers,
        custom_ops=understand_custom_ops(custom_ops),
        extra={"custom_translation_table": translations(custom_translation_table)},
        notes=tuple(notes),
        tell=_aloud(progress) if progress is not None else lambda _: None,
    )
    result = convert(request, wishes)
    if result.verdict == "refused":
        raise ExportError(result)
    return result


def check_metadata(metadata: Mapping[str, str] | None) -> dict[str, str]:
    for key, value in (metadata or {}).items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise DeclarationError(f"metadata {key!r}: {value!r} must map text to text")
        if key.startswith("anyshape."):
            raise DeclarationError(f"metadata `{key}`: names that begin with `anyshape.` are anyshape's own")
    return dict(metadata or {})


def _aloud(progress: Progress) -> Progress:
    """Progress is told on the streams of whoever called, although the model's and torch's output is kept back."""
    output, errors = sys.stdout, sys.stderr

    def tell(text: str) -> None:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            progress(text)

    return tell


def convert(request: Request, wishes: Wishes) -> Result:
    """The whole way, with the module put back as it was whatever happens."""
    with capture.quiet():
        # what a model was in is lost once it is in eval mode, so a second try is told
        wishes = replace(wishes, training=wishes.training or tuple(training_parts(request.target.module)))
        with untouched(request.target.module):
            result = _convert(request, wishes)
            edits = usable_edits(result.findings) if wishes.may_edit and result.verdict == "refused" else []
            return _with_edits(request, wishes, edits) if edits else result


def _with_edits(request: Request, wishes: Wishes, edits: Sequence[Edit]) -> Result:
    """The same export with the model's code changed in memory, and put back."""
    with contextlib.ExitStack() as stack:
        for edit in edits:
            stack.enter_context(edited(edit.path, edit.source))
        result = _convert(request, wishes)
    told = (
        f"{edit.name}:{change.line}: `{change.old}` read as `{change.new}`" for edit in edits for change in edit.changes
    )
    return replace(result, repairs=(*told, *result.repairs))


def _convert(request: Request, wishes: Wishes) -> Result:
    ground = survey(request, wishes)
    if ground.reference.is_random(ground.first):
        return refuse(ground, (), [rules.random_output(ground.first.names, ground.home)])
    if ground.boundaries.pins:
        wishes.tell("looking for what pins a dim")
        findings = doubts.pinned(ground)
        dims = [pin.dim for pin in ground.boundaries.pins]
        return _without(ground, dims, findings) if wishes.narrow else refuse(ground, (), findings)
    with staged(wishes.destination) as stage:
        result, pinned = _try_strategies(ground, stage)
    return _without(ground, pinned, result.findings) if pinned else result


def _without(ground: Ground, dims: Sequence[str], findings: Sequence[Finding]) -> Result:
    """The same export with dims that cannot vary left static: for `narrow=True` only."""
    request = ground.request
    narrower = replace(request, spec=without_dims(request.spec, dims), make_inputs=_fixed(request, dims))
    fixed = tuple(f"{dim} is fixed at {request.spec.example[dim]}" for dim in dims)
    result = _convert(narrower, replace(ground.wishes, given_up=(*ground.wishes.given_up, *fixed)))
    return replace(result, findings=(*findings, *result.findings)) if result.verdict != "refused" else result


def _fixed(request: Request, dims: Sequence[str]) -> Callable[..., Any] | None:
    if request.make_inputs is None:
        return None
    return partial(request.make_inputs, **{dim: request.spec.example[dim] for dim in dims})


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


_SECONDS_FOR_STRATEGIES = 120.0
"""A healthy model needs one strategy; whoever waits for a refusal should not wait for hours."""


def _try_strategies(ground: Ground, stage: Stage) -> tuple[Result, Sequence[str]]:
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
        tried = _try(ground, stage, name, run, _suspicion(tries))
        if tried.attempt.outcome == "skipped":
            continue  # it would have done what was done before
        tries.append(tried)
        attempts = [one.attempt for one in tries]
        if tried.checked is not None and tried.is_right:
            return _end(ground, stage, tried.checked, attempts)
        if tried.unknown and tried.candidate is not None:
            return _with_unknown_operators(ground, stage, tried, attempts), ()
        if tried.candidate is not None and tried.candidate.simpler is not None and not _breaks_assumptions(tried):
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
    possible = [sizes for sizes in _failing_sizes(wrong[-1]) if _broken(wrong[-1], sizes)]
    sizes = min(possible, key=lambda sizes: sum(sizes.values()))
    return ELSEWHERE, partial(elsewhere, make_job(ground, ground.reference.run(sizes)))


def _breaks_assumptions(tried: Tried) -> bool:
    """Whether the file is wrong at sizes at which an assumption of its trace does not hold."""
    return any(_broken(tried, sizes) for sizes in _failing_sizes(tried))


def _failing_sizes(tried: Tried) -> list[Mapping[str, int]]:
    return [] if tried.checked is None else [failure.sizes for failure in tried.checked.verification.failures]


def _broken(tried: Tried, sizes: Mapping[str, int]) -> bool:
    return not all(guard.holds(sizes) for guard in tried.attempt.guards)


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
    if not candidate.records_guards and (frozen := _frozen(ground)):
        return Tried(replace(attempt, outcome="failed", reason=f"would freeze a decision at {frozen}"))
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
    if frozen := _frozen_elsewhere(ground, checked):
        return replace(attempt, outcome="failed", reason=f"would freeze a decision at {frozen}")
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


def _frozen(ground: Ground) -> str:
    """Where a trace of real tensors would keep one path of a decision on values."""
    places = ground.reference.value_decisions(ground.first)
    return ", ".join(str(place or ground.home) for place in places)


_SIZES_TO_READ_AT = 4


def _frozen_elsewhere(ground: Ground, checked: Checked) -> str:
    """Where the module decides by values at sizes that the trace's own path excludes: no run tells, if all values that
    were tried decide the same way.
    """
    sizes = [check.sizes for check in checked.verification.checks if check.content == 0]
    beyond = [one for one in sizes if not all(guard.holds(one) for guard in checked.candidate.guards)]
    if not beyond:
        return ""
    kept = {*ground.reference.value_decisions(ground.first), *(branch.span for branch in checked.candidate.branches)}
    runs = (ground.reference.run(one) for one in beyond[:_SIZES_TO_READ_AT])
    places = [place for run in runs for place in ground.reference.value_decisions(run) if place not in kept]
    return ", ".join(dict.fromkeys(str(place or ground.home) for place in places))


def _wrong_reason(checked: Checked) -> str:
    failure = checked.smallest
    if failure is None:
        return "no size could be run"
    where = f" at {references.describe(failure.sizes)}" if failure.sizes else ""
    return f"{failure.sentence}{where}"
