"""One candidate on trial: written to the temporary folder, loaded in ONNX Runtime, run at every planned size."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import onnx
import onnx_ir as ir
import torch

from anyshape.conversion.candidates import Candidate, make_job
from anyshape.conversion.graph import finish
from anyshape.conversion.graph.wider_types import holds_bfloat16, widened_file
from anyshape.conversion.strategies import repaired_assumptions
from anyshape.garbage import uncollected
from anyshape.model.kept_state import kept_lengths, kept_sizes
from anyshape.model.oracle import describe
from anyshape.model.survey import ExportOptions, Survey
from anyshape.onnxfile.baked_sizes import integers_of, size_literals
from anyshape.onnxfile.contract import Assumption
from anyshape.onnxfile.decided_sizes import decided_sizes, otherwise_at
from anyshape.onnxfile.interface import read_interface
from anyshape.onnxfile.metadata import session_advice
from anyshape.onnxfile.placement import told_in_a_sentence
from anyshape.onnxfile.rounded_sizes import rounded_sizes
from anyshape.onnxfile.saving import Stage
from anyshape.results.attempt import Attempt, Guard, MadeOfDim
from anyshape.results.verification import Failure, Verification
from anyshape.runtime.custom_ops import PartedSession, UnknownOperator, unknown_operators
from anyshape.runtime.session import RuntimeFailureError, Session
from anyshape.sizes import budgets
from anyshape.sizes.conditions import narrowed_range
from anyshape.sizes.notation import SizeRange, Sizes
from anyshape.sizes.settlement import SizesInQuestion
from anyshape.testbench.assumptions import Assumptions
from anyshape.testbench.checker import smallest_failure, verify
from anyshape.testbench.plan import (
    Budget,
    Plan,
    affordable,
    choose,
    far_sizes,
    reach,
    sizes_at_literals,
    smallest_sizes,
)
from anyshape.verification.branches_taken import provoke
from anyshape.verification.content_runs import run_contents
from anyshape.verification.final_file import JudgedFile
from anyshape.verification.first_wrong_node import WrongNode, first_difference
from anyshape.verification.lost_digits import with_lost_digits
from anyshape.verification.model_reference import ModelChecker, checker_beside_model
from anyshape.verification.output_labels import Labels, are_contradicted, foretold_labels


@dataclass(frozen=True)
class Checked:
    """A candidate with all its runs."""

    candidate: Candidate
    verification: Verification
    strategy: str
    smallest: Failure | None = None
    where: WrongNode | None = None
    beyond: tuple[Guard, ...] = ()
    """What the model's code asks on paths that the candidate's trace did not take."""
    judged: JudgedFile | None = None
    ends: Callable[[], tuple[Assumption, ...]] | None = None
    """Of a wrong file: what became of its assumptions, which takes long to tell and is for a refusal alone."""

    @property
    def told(self) -> Verification:
        """The verification as a refusal tells it."""
        return self.verification if self.ends is None else replace(self.verification, assumptions=self.ends())

    @property
    def unsettled(self) -> list[tuple[Guard, Sizes]]:
        """What it assumes that a declared size is known to break, and that size, which was not run."""
        if self.verification.failures:
            return []  # then it is known what the file gives
        guards = {guard.text: guard for guard in (*self.candidate.guards, *self.beyond)}
        open_ends = [one for one in self.verification.assumptions if one.end == "open"]
        return [(guards[one.expression], one.breaks_at) for one in open_ends if one.breaks_at is not None]


@dataclass(frozen=True)
class Suspicion:
    """What earlier strategies taught: their assumptions, and the sizes at which their files were wrong."""

    paths: tuple[tuple[Guard, ...], ...] = ()
    """What each of them assumed."""
    sizes: tuple[Sizes, ...] = ()
    made: tuple[MadeOfDim, ...] = ()
    """What Python made of dims: what it does with that, no record tells."""


class UnknownOperatorsError(Exception):
    def __init__(self, operators: Sequence[UnknownOperator]) -> None:
        super().__init__(f"ONNX Runtime has no {', '.join(operator.name for operator in operators)}")
        self.operators = list(operators)


def try_out(
    survey: Survey,
    stage: Stage,
    candidate: Candidate,
    attempt: Attempt,
    ranges: Mapping[str, SizeRange] | None = None,
    suspicion: Suspicion | None = None,
) -> Checked:
    """Write the candidate to the temporary folder and run the full policy on it.

    Where labels that the trace foretold are not what the model gives, they may be to blame: it is judged without them.
    """
    ranges, suspicion = ranges or survey.request.spec.ranges, suspicion or Suspicion()
    labels = foretold_labels(survey, candidate, ranges)
    try:
        checked = _try_with_labels(survey, stage, candidate, attempt, ranges, suspicion, labels)
    except RuntimeFailureError:
        if labels is None:
            raise
    else:
        if labels is None or not _contradict_model(labels, survey, checked.verification.failures):
            return checked
    return _try_with_labels(survey, stage, candidate, attempt, ranges, suspicion, None)


def _contradict_model(labels: Labels, survey: Survey, failures: Iterable[Failure]) -> bool:
    runs = (survey.reference.run(failure.sizes) for failure in failures if failure.sizes)
    shapes = ((run.sizes, [tuple(output.shape) for output in run.outputs]) for run in runs if run.runs)
    return any(are_contradicted(labels, *one) for one in shapes)


def _staged_candidate(
    survey: Survey, stage: Stage, model: ir.Model, labels: Labels | None
) -> tuple[Session, torch.dtype | None, onnx.ModelProto]:
    """The file in the stage, opened, and its graph without labels: of what they foretell, nothing is asked yet."""
    options, unlabelled = survey.options, [None] * len(model.graph.outputs)
    finish.add_metadata(model, {**options.metadata, **session_advice(model)})
    finish.set_output_axes(model, labels or unlabelled)
    with uncollected():
        stage.write(model, external_data=options.external_data)
        finish.set_output_axes(model, unlabelled)
        session, computed_in = _load_candidate(stage, model, options)
        proto = onnx.load(stage.path, load_external_data=False)
    for output in proto.graph.output:
        output.type.tensor_type.ClearField("shape")
    return session, computed_in, proto


def _try_with_labels(
    survey: Survey,
    stage: Stage,
    candidate: Candidate,
    attempt: Attempt,
    ranges: Mapping[str, SizeRange],
    suspicion: Suspicion,
    labels: Labels | None,
) -> Checked:
    options, request = survey.options, survey.request
    session, computed_in, proto = _staged_candidate(survey, stage, candidate.model, labels)
    leaves = tuple(request.spec.inputs(request.signature))
    checker = checker_beside_model(
        session, read_interface(proto), survey.reference, leaves, options.tolerance, computed_in,
        compares_values=options.compares_values,
    )  # fmt: skip
    made = {(one.what, one.dim): one for one in (candidate.made if candidate.records_guards else suspicion.made)}
    assumptions = _assumptions(survey, candidate, ranges, suspicion)
    plan = _plan(survey, candidate, ranges, suspicion, assumptions, list(made.values()))
    converted = survey.reference.effort(survey.traced).calls * budgets.WORK_OF_A_CONVERTED_CALL
    budget = Budget(options.seconds, max(budgets.WORK_TO_CHECK, converted))
    verification = verify(checker, plan, survey.boundaries, budget)
    unknown = tuple(_unknown_uses(made.values(), ranges, verification))
    if not verification.failures:
        verification = replace(verification, assumptions=(*assumptions.ends(verification), *unknown))
    if computed_in is not None:
        wide = str(computed_in).removeprefix("torch.")
        verification = replace(verification, computed_in=wide, own_type="bfloat16")
    if not verification.failures:
        # what other values show wrong is not searched for smaller sizes: those are no cause of it
        loaded = stage.path if computed_in is None else _widened_path(stage)
        open_file = partial(options.custom_ops.open, providers=options.providers)
        if options.compares_values:
            verification = provoke(checker, verification, survey.traced, loaded, open_file, budget.part(0.25))
        if verification.is_right and options.compares_values:
            run, model = verification.sizes_run, candidate.model
            otherwise = (*assumptions.broken_at(run), *otherwise_at(model, survey.traced, run))
            verification = run_contents(checker, verification, survey.traced, model, budget.part(0.25), otherwise)
        failure, beyond = next(iter(verification.failures), None), assumptions.others(candidate.guards)
        judged = _judged_file(stage, checker, verification, survey.traced)
        return Checked(candidate, verification, attempt.strategy, failure, beyond=beyond, judged=judged)
    smallest = smallest_failure(checker, verification.failures, plan, budget.part(0.25))
    where = first_difference(proto, checker, smallest) if options.compares_values else None
    smallest, beyond = with_lost_digits(proto, checker, smallest), assumptions.others(candidate.guards)
    ends = partial(_ends_of_wrong_file, assumptions, plan, verification, unknown)
    return Checked(candidate, verification, attempt.strategy, smallest, where, beyond, ends=ends)


def _ends_of_wrong_file(
    assumptions: Assumptions, plan: Plan, verification: Verification, unknown: tuple[Assumption, ...]
) -> tuple[Assumption, ...]:
    """As if all of the plan had been run: what breaks them may not have been asked for."""
    tuple(plan.breaking())
    return (*assumptions.ends(verification), *unknown)


def _plan(
    survey: Survey,
    candidate: Candidate,
    ranges: Mapping[str, SizeRange],
    suspicion: Suspicion,
    assumptions: Assumptions,
    made: Sequence[MadeOfDim],
) -> Plan:
    """What to run: where the declaration ends, where the file or its trace may break, and where others were wrong."""
    options = survey.options
    box, at_limits = _closed_box(ranges, survey)
    guards = (*candidate.guards, *candidate.branches, *itertools.chain(*suspicion.paths))
    # numbers of guards before those of the file: a plan keeps the first where there are too many
    in_guards = sorted({constant for guard in guards for constant in guard.constants})
    constants = (*in_guards, *integers_of(candidate.model))
    last = sizes_at_literals(size_literals(candidate.model), ranges, survey.traced, options.tier)
    last = affordable(last, survey.reference.effort)
    last += [{**survey.traced, one.dim: size} for one in made for size in smallest_sizes(ranges[one.dim])]
    # without a record of what the trace assumed, only far sizes may show it
    last += [] if candidate.records_guards and not made else far_sizes(ranges, survey.traced)
    last += affordable(_sizes_in_code(made, ranges, survey.traced), survey.reference.effort)
    far = [*at_limits, *rounded_sizes(candidate.model, ranges, survey.traced, options.seed)]
    far = affordable((*far, *decided_sizes(candidate.model, ranges, survey.traced)), survey.reference.effort)
    first = (*suspicion.sizes, *_at_kept_state(survey, ranges, candidate.suspects), *far)
    plan = Plan(
        box, survey.traced, constants, assumptions.sizes_to_run, survey.boundaries.admit,
        options.tier, options.seed, first, tuple(last), not any(declared.is_open for declared in ranges.values()),
    )  # fmt: skip
    return replace(plan, breaking=lambda: _sizes_to_break(plan, assumptions, candidate, suspicion))


def _assumptions(
    survey: Survey, candidate: Candidate, ranges: Mapping[str, SizeRange], suspicion: Suspicion
) -> Assumptions:
    """Those of the candidate's own trace; of those before it where its own left no record."""

    def declared() -> SizesInQuestion:
        known = survey.boundaries
        return SizesInQuestion(ranges, (*known.where, *(limit.condition for limit in known.limits)), survey.traced)

    def trace(sizes: Sizes) -> tuple[Guard, ...]:
        survey.options.tell(f"tracing at {describe(sizes)}")
        return repaired_assumptions(make_job(survey, survey.reference.run(sizes)))

    return Assumptions([candidate.guards] if candidate.records_guards else suspicion.paths, declared, trace)


def _sizes_in_code(made: Sequence[MadeOfDim], ranges: Mapping[str, SizeRange], traced: Sizes) -> Iterator[Sizes]:
    """Where what code made of a dim may decide: at the integers of that code, and at products of two of them."""
    for one in made:
        numbers = sorted(number for number in one.literals if number > 1)[: budgets.MOST_LITERALS_OF_CODE]
        numbers += [a * b for a, b in itertools.combinations_with_replacement(numbers, 2)]
        near = dict.fromkeys(size for number in numbers for size in (number, number + 1, number - 1))
        within = (size for size in near if size in ranges[one.dim] and size <= budgets.LARGEST_SUSPECT)
        yield from ({**traced, one.dim: size} for size in within)


def _unknown_uses(
    made: Iterable[MadeOfDim], ranges: Mapping[str, SizeRange], verification: Verification
) -> Iterator[Assumption]:
    """What Python made of a dim is open, unless each of its sizes was run."""
    for one in made:
        run, declared = {sizes[one.dim] for sizes in verification.sizes_run}, ranges[one.dim]
        if declared.is_open or len(run) < len(declared):
            place = f"{one.span.path}:{one.span.line}" if one.span is not None else ""
            yield Assumption(f"a {one.what} made of {one.dim}", place, "open")


def never_run(survey: Survey, candidate: Candidate) -> tuple[Assumption, ...]:
    """What a candidate assumes that is written without a check: what can be proved without a run, and the rest."""
    assumptions = _assumptions(survey, candidate, survey.request.spec.ranges, Suspicion())
    assumptions.before_any_run(())
    return assumptions.ends(Verification())


def _sizes_to_break(
    plan: Plan, assumptions: Assumptions, candidate: Candidate, suspicion: Suspicion
) -> Iterator[Sizes]:
    """Where an assumption breaks that no planned size breaks, and for each branch of the file both its sides."""
    planned = choose(plan)
    yield from assumptions.before_any_run(planned)
    others = [(side,) for branch in candidate.branches for side in (branch, branch.opposite)]
    yield from assumptions.beside((*others, *suspicion.paths)).before_any_run(planned)


def _judged_file(stage: Stage, checker: ModelChecker, verification: Verification, traced: Sizes) -> JudgedFile:
    """What the final file is held to: at the traced size, and at another of which no dim is 1 where there is one."""
    others = sorted((sizes for sizes in verification.sizes_run if sizes != traced), key=lambda one: 1 in one.values())
    runs = [checker.reference.run(sizes) for sizes in (traced, *others[:1])]
    session = checker.session if verification.computed_in is None and verification.is_right else None
    return JudgedFile.of(stage.path, session, [checker.reference.inputs(run) for run in runs if run.error is None])


def _at_kept_state(survey: Survey, ranges: Mapping[str, SizeRange], suspects: Sequence[int]) -> list[Sizes]:
    """Where the module may read what it kept: at the example's own sizes first, with which it was warmed up."""
    example = {dim: ranges[dim].nearest(size) for dim, size in survey.request.spec.start.items()}
    lengths = kept_lengths(survey.request.target.module)
    return [example, *kept_sizes(example, ranges, suspects), *kept_sizes(example, ranges, lengths)]


def _closed_box(ranges: Mapping[str, SizeRange], survey: Survey) -> tuple[dict[str, SizeRange], list[Sizes]]:
    """What to run of each dim; of an open one that a limit ends, no more than without it, and the limit itself."""
    box, at_limits = dict[str, SizeRange](), list[Sizes]()
    for dim, declared in ranges.items():
        box[dim] = left = narrowed_range(declared, survey.boundaries.conditions, dim)
        if declared.is_open:
            box[dim] = left.up_to(reach(left, survey.traced[dim]))
            at_limits += [{**survey.traced, dim: left.hi}] if left.hi is not None else []
    return box, at_limits


def _load_candidate(stage: Stage, model: ir.Model, options: ExportOptions) -> tuple[Session, torch.dtype | None]:
    """The file in ONNX Runtime; where it cannot run bfloat16, the same graph in float32."""
    custom_ops = options.custom_ops
    try:
        session = custom_ops.open(stage.path, options.providers)
    except RuntimeFailureError:
        if unknown := unknown_operators(onnx.load(stage.path, load_external_data=False), custom_ops):
            raise UnknownOperatorsError(unknown) from None
        if not holds_bfloat16(model):
            raise
    else:
        # what passes between parts of a file are numpy's arrays, which have no bfloat16
        if not (isinstance(session, PartedSession) and holds_bfloat16(model)):
            return session, None
    path = _widened_path(stage)
    with told_in_a_sentence(stage.destination):
        ir.save(widened_file(stage.path), path)
    return custom_ops.open(path, options.providers), torch.float32


def _widened_path(stage: Stage) -> Path:
    return stage.path.with_name(f"widened-{stage.path.name}")
