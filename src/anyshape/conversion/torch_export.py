"""From a job to a candidate by torch.export and torch's translation, with a record of what both assumed."""

from __future__ import annotations

import contextlib
import logging
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import onnx_ir as ir
import torch

from anyshape.conversion import trace
from anyshape.conversion.candidates import Candidate, Conversion, Job
from anyshape.conversion.control_flow.forks import Forks
from anyshape.conversion.control_flow.lowering import lower_regions
from anyshape.conversion.control_flow.samples import Samples, Table
from anyshape.conversion.graph.known_sizes import DeclaredAxis
from anyshape.conversion.graph.recurrent_weights import lay_out_weights
from anyshape.conversion.graph.rewrites import rewrite
from anyshape.conversion.graph.runtime_gaps import keep_pads_of_pools, spread_rotary_tables
from anyshape.conversion.operators.custom import CustomOperators
from anyshape.conversion.operators.repair import Acted, Repair, applied
from anyshape.conversion.speed.alike_parts import repeated_parts
from anyshape.conversion.trace import decides, operators_of
from anyshape.conversion.translation import Translation, translate_program
from anyshape.garbage import uncollected
from anyshape.results import attempt as attempt_
from anyshape.results.attempt import Attempt, PinnedByTrace, UntranslatedOperatorError
from anyshape.sizes import budgets
from anyshape.torchkit import capture
from anyshape.torchkit.reasons import reason_of

_log = logging.getLogger(__name__)


def by_export(
    job: Job, name: str, repairs: Sequence[Repair], *, both_sides: bool = False, copying: bool = False
) -> tuple[Candidate | None, Attempt, Acted]:
    """One try; with `both_sides` the trace takes every branch both ways, with `copying` parts alike are traced once."""
    start = time.monotonic()
    custom = CustomOperators(job.extra.get("custom_translation_table", {}), job.opset)
    with (
        capture.recording() as recorder,
        applied((*repairs, custom.repair)) as acted,
        _forking(job, recorder, both_sides=both_sides) as forks,
        uncollected(),
    ):
        try:
            with repeated_parts(wanted=copying) as copied:
                program = _traced(job, forks)
            custom.refuse_untranslated(program)
            meaning = trace.meaning_of(recorder, job.names, job.spec)
            outputs, operators = trace.output_expressions(program, meaning), operators_of(program)
            translation = _translated(program, job, job.opset)
        except Exception as error:  # noqa: BLE001  an attempt: kept and shown
            meaning = trace.meaning_of(recorder, job.names, job.spec)
            pins, guards = trace.pins_of(recorder, meaning), trace.guards_of(recorder, meaning)
            cause = cause_of(error, pins)
            return None, Attempt(name, "failed", cause, time.monotonic() - start, error, pins, guards), acted
    branches = trace.branches_of(forks.branches.values(), meaning) if forks else ()
    if branches:
        acted.note(_sentence(branches))
    guards, pins = trace.guards_of(recorder, meaning), trace.pins_of(recorder, meaning)
    seconds = time.monotonic() - start
    attempt = Attempt(
        name, "converted", "", seconds, None, pins, guards, translation.forced_by, translation.inlined, tuple(copied)
    )
    candidate = Candidate(
        translation.model, job.opset, guards, branches, operators, outputs,
        repairs=tuple(acted.sentences), suspects=tuple(sorted(acted.suspects)),
        # a program with several paths is translated with the knowledge of its trace
        program=None if both_sides else program,
    )  # fmt: skip
    return candidate, attempt, acted


def operators_at(job: Job, repairs: Sequence[Repair]) -> Counter[str] | None:
    """What a trace at the job's very sizes calls, with none of them left open; None where it does not come through, or
    keeps something for the run to decide.
    """
    custom = CustomOperators(job.extra.get("custom_translation_table", {}), job.opset)
    values = tuple(value for _, value in job.leaves)
    try:
        with applied((*repairs, custom.repair)), uncollected():
            program = trace.export_program(job.adapter, values, [None for _ in values])
    except Exception:  # noqa: BLE001  whatever it is
        return None
    return None if decides(program) else operators_of(program)


@contextlib.contextmanager
def _forking(job: Job, recorder: capture.Recorder, *, both_sides: bool) -> Iterator[Forks | None]:
    if not both_sides:
        yield None
        return
    from anyshape.conversion.control_flow.module_paths import branching  # few models need it

    table = Table(job.spread(), recorder.sources, partial(trace.meaning_of, recorder, job.names, job.spec))
    with branching(job.adapter, Samples.of(table), recorder) as forks:
        yield forks


def _traced(job: Job, forks: Forks | None) -> torch.export.ExportedProgram:
    """Once; anew where the sides of a branch turn out to meet only further out than they were run."""
    for _ in range(budgets.MOST_TRACES):
        try:
            return trace.trace(job.adapter, job.leaves, job.spec)
        except Exception:
            if forks is None or not forks.begin_anew():
                raise
    return trace.trace(job.adapter, job.leaves, job.spec)


def _sentence(branches: Sequence[attempt_.Guard]) -> str:
    spans = sorted({(branch.span.path, branch.span.line) for branch in branches if branch.span is not None})
    places = ", ".join(f"{path}:{line}" for path, line in spans)
    count = "1 branch" if len(branches) == 1 else f"{len(branches)} branches"
    return f"{count} kept as If: {places}"


def _translated(program: torch.export.ExportedProgram, job: Job, opset: int) -> Translation:
    translation = translate_program(program, opset, job.extra)
    model = translation.model
    spread_rotary_tables(model)  # its nodes are given names that differ in all graphs when regions are lowered
    keep_pads_of_pools(model)
    lower_regions(model)
    lay_out_weights(model)
    if not (job.rewrites and job.extra.get("optimize", True)):
        return translation
    try:
        rewrite(model, [_declared(job, name) for name in job.names])
    except Exception:  # noqa: BLE001  a faster file is no reason to have none
        _log.exception("a rewrite failed; the file is written without")
        return _translated(program, replace(job, rewrites=False), opset)
    return translation


def _declared(job: Job, name: str) -> list[DeclaredAxis | None]:
    """What the axes of an input were declared as, and how small each may be; an expression may be anything."""
    return [
        None if axis is None else DeclaredAxis(str(axis), job.spec.ranges[axis.text].nearest(0) if axis.is_name else 0)
        for axis in job.spec.axes.get(name, ())
    ]


def translate_again(job: Job, name: str, candidate: Candidate) -> Conversion:
    """The candidate's own program in the form that the job asks for."""
    assert candidate.program is not None
    start = time.monotonic()
    try:
        model = _translated(candidate.program, job, job.opset).model
    except Exception as error:  # noqa: BLE001  an attempt: kept and shown
        return None, Attempt(name, "failed", cause_of(error), time.monotonic() - start, error)
    return replace(candidate, model=model, opset=job.opset), Attempt(name, "converted", "", time.monotonic() - start)


def cause_of(error: BaseException, pins: Sequence[PinnedByTrace] = ()) -> str:
    """One line about why a strategy failed: the dims that it pinned, or what torch said."""
    if pins:
        return "; ".join(f"`{pin.dim}` became {pin.size}" + (f" at {pin.span}" if pin.span else "") for pin in pins)
    return str(error) if isinstance(error, UntranslatedOperatorError) else reason_of(error)


def torchscript_model(job: Job, opset: int) -> ir.Model:
    """The job as this exporter writes it; inputs are called `input_<index>`, and unused ones are left out."""
    names = [f"input_{index}" for index in range(len(job.leaves))]
    dynamic_axes = {
        name: {
            axis: f"{name}_{axis}"
            for axis, expression in enumerate(job.spec.axes.get(leaf, ()))
            if expression is not None
        }
        for name, leaf in zip(names, job.names, strict=True)
    }
    arguments = tuple(value for _, value in job.leaves)
    with tempfile.TemporaryDirectory() as folder, capture.quiet(), capture.silent_descriptors():
        path = Path(folder) / "model.onnx"
        # with gradients on, attention layers do not take the fast path that this exporter cannot translate
        with torch.enable_grad():
            torch.onnx.export(
                job.adapter, arguments, str(path), dynamo=False, input_names=names, dynamic_axes=dynamic_axes,
                opset_version=opset, verbose=False,
            )  # fmt: skip
        model = ir.load(path)
        ir.external_data.load_to_model(model)
    return model
