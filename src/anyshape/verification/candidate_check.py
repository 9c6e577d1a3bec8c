"""One candidate on trial: written to the temporary folder, loaded in ONNX Runtime, run at every planned size."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import onnx
import onnx_ir as ir
import torch

from anyshape.bench.bench import smallest_failure, verify
from anyshape.bench.plan import Budget, Plan, breaking_sizes, far_sizes, horizon
from anyshape.conversion.candidates import Candidate
from anyshape.conversion.graph.wider_types import holds_bfloat16, widened_file
from anyshape.garbage import uncollected
from anyshape.model.kept_state import kept_lengths, kept_sizes
from anyshape.model.limits import effective_range
from anyshape.model.survey import ExportOptions, Survey
from anyshape.onnxfile.baked_sizes import integers_of
from anyshape.onnxfile.interface import read_interface
from anyshape.onnxfile.rounded_sizes import rounded_sizes
from anyshape.onnxfile.saving import Stage
from anyshape.results.attempt import Attempt, Guard
from anyshape.results.verification import Failure, Verification
from anyshape.runtime.custom_ops import PartedSession, UnknownOperator, unknown_operators
from anyshape.runtime.session import RuntimeFailureError, Session
from anyshape.sizes.notation import SizeRange, Sizes
from anyshape.verification.branches_taken import provoke
from anyshape.verification.first_wrong_node import WrongNode, first_difference
from anyshape.verification.lost_digits import with_lost_digits
from anyshape.verification.model_reference import checker_beside_model


@dataclass(frozen=True)
class Checked:
    """A candidate with all its runs."""

    candidate: Candidate
    verification: Verification
    strategy: str
    smallest: Failure | None = None
    where: WrongNode | None = None


@dataclass(frozen=True)
class Suspicion:
    """What earlier strategies taught: their assumptions, and the sizes at which their files were wrong."""

    guards: tuple[Guard, ...] = ()
    sizes: tuple[Sizes, ...] = ()


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
    """Write the candidate to the temporary folder and run the full policy on it."""
    options, request = survey.options, survey.request
    with uncollected():
        stage.write(candidate.model, external_data=options.external_data)
        session, computed_in = _load_candidate(stage, candidate.model, options)
        proto = onnx.load(stage.path, load_external_data=False)
    leaves = tuple(request.spec.inputs(request.signature))
    checker = checker_beside_model(
        session, read_interface(proto), survey.reference, leaves, options.tolerance, computed_in
    )
    ranges = ranges or request.spec.ranges
    box = closed_box(ranges, survey)
    suspicion = suspicion or Suspicion()
    guards = (*candidate.guards, *candidate.branches, *suspicion.guards)
    # numbers of guards before those of the file: a plan keeps the first where there are too many
    in_guards = sorted({constant for guard in guards for constant in guard.constants})
    constants = (*in_guards, *integers_of(candidate.model))
    # without a record of what the trace assumed, only far sizes may show it
    last = () if candidate.records_guards else tuple(far_sizes(ranges, survey.traced))
    kept = _at_kept_state(survey, ranges, candidate.suspects)
    rounded = rounded_sizes(candidate.model, ranges, survey.traced, options.seed)
    first = (*suspicion.sizes, *kept, *breaking_sizes(guards, ranges, survey.traced), *rounded)
    plan = Plan(
        box, survey.traced, constants, tuple(g.holds for g in guards), survey.boundaries.admit, options.tier,
        options.seed, first, last, not any(declared.is_open for declared in ranges.values()),
    )  # fmt: skip
    seconds = options.seconds if options.seconds is not None else max(10.0, attempt.seconds)
    budget = Budget(seconds, available_memory() // 4)
    verification = verify(checker, plan, survey.boundaries, budget)
    if computed_in is not None:
        verification = replace(verification, computed_in=str(computed_in).removeprefix("torch."))
    if not verification.failures:
        # what other values show wrong is not searched for smaller sizes: those are no cause of it
        loaded = stage.path if computed_in is None else _widened_path(stage)
        open_file = partial(options.custom_ops.open, providers=options.providers)
        verification = provoke(checker, verification, survey.traced, loaded, open_file, Budget(budget.seconds / 4))
        return Checked(candidate, verification, attempt.strategy, next(iter(verification.failures), None))
    extra = Budget(max(2.0, budget.remaining))
    smallest = smallest_failure(checker, verification.failures, plan, extra)
    where = first_difference(proto, checker, smallest)
    return Checked(candidate, verification, attempt.strategy, with_lost_digits(proto, checker, smallest), where)


def _at_kept_state(survey: Survey, ranges: Mapping[str, SizeRange], suspects: Sequence[int]) -> list[Sizes]:
    """Where the module may read what it kept: at the example's own sizes first, with which it was warmed up."""
    example = {dim: ranges[dim].nearest(size) for dim, size in survey.request.spec.start.items()}
    lengths = kept_lengths(survey.request.target.module)
    return [example, *kept_sizes(example, ranges, suspects), *kept_sizes(example, ranges, lengths)]


def closed_box(ranges: Mapping[str, SizeRange], survey: Survey) -> dict[str, SizeRange]:
    left = {dim: effective_range(declared, survey.boundaries.limits, dim) for dim, declared in ranges.items()}
    return {dim: horizon(declared, survey.traced[dim]) for dim, declared in left.items()}


def available_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return 8 * 2**30


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
    ir.save(widened_file(stage.path), path)
    return custom_ops.open(path, options.providers), torch.float32


def _widened_path(stage: Stage) -> Path:
    return stage.path.with_name(f"widened-{stage.path.name}")
