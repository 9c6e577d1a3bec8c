"""The file of a candidate that was judged: its final dims and its contract, written and moved to its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import onnx

import anyshape
from anyshape.conversion.candidates import Candidate
from anyshape.conversion.graph import finish
from anyshape.garbage import uncollected
from anyshape.model.labels import call_structure, output_names, result_structure
from anyshape.model.limits import effective_range
from anyshape.model.survey import Survey
from anyshape.onnxfile.contract import KEY, Contract
from anyshape.onnxfile.graph import is_standard, proto_graphs
from anyshape.onnxfile.interface import opset_of, read_interface
from anyshape.onnxfile.metadata import session_advice
from anyshape.onnxfile.saving import Stage
from anyshape.results.attempt import Attempt
from anyshape.results.finding import Finding
from anyshape.results.result import Result, Verdict
from anyshape.results.verification import Verification, evidence_of
from anyshape.sizes.fit import observed_at
from anyshape.sizes.notation import SizeRange
from anyshape.stages.offers import notes_on_limits
from anyshape.verification.candidate_check import never_run
from anyshape.verification.final_file import JudgedFile
from anyshape.verification.output_labels import final_ranges, fitted_labels


def write_file(
    survey: Survey,
    stage: Stage,
    candidate: Candidate,
    attempts: Sequence[Attempt],
    verification: Verification | None,
    verdict: Verdict,
    findings: Sequence[Finding] = (),
    ranges: Mapping[str, SizeRange] | None = None,
    judged: JudgedFile | None = None,
) -> Result:
    """Write the final dims and the contract, hold the file to the judged one, and move it to its place."""
    options, spec = survey.options, survey.request.spec
    limits = survey.boundaries.limits
    notes = [*survey.notes, *survey.boundaries.notes, *notes_on_limits(spec.example, limits)]
    left = final_ranges(survey, ranges or spec.ranges)
    first = [observed_at(survey.first.sizes, survey.first.outputs)]
    axes, formulas = fitted_labels(survey, candidate, verification.observations if verification else first, left, notes)
    assumptions = verification.assumptions if verification is not None else never_run(survey, candidate)
    graph = "" if judged is None else judged.fingerprint
    contract = replace(_contract(survey, left, formulas, verdict, verification, graph), assumptions=assumptions)
    finish.set_output_axes(candidate.model, axes)
    judged = None if judged is None else judged.before(candidate.model)
    advice = session_advice(candidate.model)
    finish.add_metadata(candidate.model, {**options.metadata, **advice, KEY: contract.to_text()})
    with uncollected():
        stage.write(candidate.model, external_data=options.external_data)
        written = onnx.load(stage.path, load_external_data=False)
        fault = _unfit_for_target(survey, written)
        if judged is not None and fault is None:
            open_file = partial(options.custom_ops.open, providers=options.providers)
            fault = judged.finding(stage.path, survey.home, open_file)
        if fault is not None:
            refusal = Result("refused", dims=spec.ranges, attempts=tuple(attempts), verification=verification)
            return replace(refusal, findings=(fault,), notes=survey.notes)
    notes += [] if verification is None else [*verification.notes, *options.custom_ops.notes_on(written)]
    interface = read_interface(written)
    stage.commit()
    return Result(
        verdict,
        interface.inputs,
        interface.outputs,
        left,
        tuple(str(limit) for limit in limits if not limit.of_export),
        spec.constants,
        tuple(attempts),
        candidate.repairs,
        verification,
        tuple(findings),
        tuple(notes),
        options.destination,
        opset_of(written),
        sum(attempt.seconds for attempt in attempts),
        given_up=_given_up(survey, ranges or spec.ranges, findings),
        where=tuple(map(str, spec.where)),
        limits_at=survey.boundaries.places,
        assumptions=assumptions,
        draws=contract.draws,
        _model=candidate.model,
        _custom_ops=options.custom_ops,
    )


def _unfit_for_target(survey: Survey, written: onnx.ModelProto) -> Finding | None:
    """What the runtime that was named would not load of the file that was written."""
    runtime, opset = survey.options.runtime, opset_of(written) or 0
    if runtime is None:
        return None
    used = {node.op_type for graph in proto_graphs(written) for node in graph.node if is_standard(node)}
    for operator in (operator for operator, since in runtime.lacks if operator in used and opset >= since):
        message = f"{runtime} has no kernel for `{operator}` of opset {opset}"
        helps = ("ask for an older opset, or for a newer runtime",)
        return Finding("runtime-error", message, survey.home, helps=helps, origin="export")
    if opset <= runtime.opset and written.ir_version <= runtime.ir_version:
        return None
    message = f"{runtime} does not load the file: it takes opset {runtime.opset} and IR version {runtime.ir_version}"
    notes = (f"the file has opset {opset} and IR version {written.ir_version}",)
    return Finding("runtime-error", message, survey.home, notes=notes, origin="export")


def _contract(
    survey: Survey,
    ranges: Mapping[str, SizeRange],
    formulas: Mapping[str, tuple[str, ...]],
    verdict: Verdict,
    verification: Verification | None,
    graph: str,
) -> Contract:
    """What the file promises, and where its inputs and outputs stand in the module's call and result."""
    request, limits = survey.request, survey.boundaries.limits
    spec, ports = request.spec, request.input_names
    return Contract(
        ranges,
        tuple(limit.condition for limit in limits if not limit.of_export),
        tuple(limit.condition for limit in limits if limit.of_export),
        formulas,
        spec.constants,
        verdict,
        anyshape.__version__,
        {ports[leaf]: expression for leaf, expression in spec.scalars.items()},
        call_structure(request.target, request.signature, ports),
        result_structure(survey.reference, survey.first, output_names(request, survey.first.names)),
        evidence=None if verification is None else evidence_of(verification, graph),
        where=spec.where,
        draws={ports[leaf]: noise for leaf, noise in spec.draws.items()},
        random=not survey.options.compares_values,
    )


def _given_up(survey: Survey, ranges: Mapping[str, SizeRange], findings: Sequence[Finding]) -> tuple[str, ...]:
    """What a narrowed file does not serve although it was declared; the model's own limits count where explicit."""
    spec, limits = survey.request.spec, survey.boundaries.limits
    own = [limit for limit in limits if not limit.of_export]
    rows = [*survey.options.given_up, *(f"only where {limit}" for limit in limits if limit.of_export)]
    against = [limit for limit in own if any(one.breaks_at == limit.breaks_at for one in findings)]
    # what a range can say is told as a range
    rows += [
        f"only where {one}" for one in against if all(effective_range(r, [one], d) == r for d, r in ranges.items())
    ]
    for dim, declared in spec.ranges.items():
        wanted = declared if dim in spec.explicit else effective_range(declared, own, dim)
        left = effective_range(ranges[dim], own, dim)
        if left != wanted:
            rows.append(f"{dim} {left} instead of {wanted}")
    return tuple(rows)
