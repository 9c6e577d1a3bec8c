"""Ways to an ONNX model, in the order in which they are tried. None of them is trusted: the checker decides.

What few models need is imported when it is tried, so that the others do not wait for it.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from pathlib import Path

import onnx_ir as ir
import torch

from anyshape.conversion.candidates import Candidate, Job, Strategy
from anyshape.conversion.operators.repairs import REPAIRS
from anyshape.conversion.torch_export import by_export, cause_of, operators_at
from anyshape.results.attempt import Attempt
from anyshape.torchkit import capture

IN_FULL = "torch.export in full"
REPAIRED = "torch.export with repairs"
ELSEWHERE = "torch.export at other sizes"
CONTROLLED = "torch.export with branches and loops"
LIFTED = "lifting from static exports"
_ALWAYS = tuple(repair for repair in REPAIRS if repair.always)


def non_strict(job: Job) -> tuple[Candidate | None, Attempt]:
    candidate, attempt, _ = by_export(job, "torch.export", _ALWAYS, copying=True)
    return candidate, attempt


def plain_operators(job: Job) -> Counter[str] | None:
    """What the first way calls at the job's sizes alone, where it comes through and decides nothing by values."""
    return operators_at(job, _ALWAYS)


def in_full(job: Job) -> tuple[Candidate | None, Attempt]:
    """Every part traced by itself: for parts that only looked alike."""
    candidate, attempt, _ = by_export(job, IN_FULL, _ALWAYS)
    return candidate, attempt


def repaired(job: Job) -> tuple[Candidate | None, Attempt]:
    """Once more, with the repairs that a healthy model does without."""
    candidate, attempt, acted = by_export(job, REPAIRED, REPAIRS)
    if not acted.beyond_the_plain_way:
        return None, Attempt(REPAIRED, "skipped", "no repair applies", attempt.seconds)
    return candidate, attempt


def elsewhere(job: Job) -> tuple[Candidate | None, Attempt]:
    """The same at sizes that take another path through the model."""
    candidate, attempt, _ = by_export(job, ELSEWHERE, REPAIRS)
    return candidate, attempt


def controlled(job: Job) -> tuple[Candidate | None, Attempt]:
    """Both sides of every branch, and loops over a varying axis as loops; with all repairs."""
    from anyshape.conversion.control_flow.kept_loops import kept_loops
    from anyshape.conversion.control_flow.module_paths import missing_names

    if missing := missing_names():
        return None, Attempt(CONTROLLED, "failed", f"this torch has no {', '.join(missing)}")
    candidate, attempt, _ = by_export(job, CONTROLLED, (*REPAIRS, kept_loops(job.adapter)), both_sides=True)
    return candidate, attempt


def strict(job: Job) -> tuple[Candidate | None, Attempt]:
    candidate, attempt, _ = by_export(job, "torch.export (strict)", _ALWAYS, strict=True)
    return candidate, attempt


def torchscript(job: Job) -> tuple[Candidate | None, Attempt]:
    """The older exporter: it traces with real tensors, so it knows no symbols and makes no guards."""
    start = time.monotonic()
    opset = min(job.opset, capture.newest_torchscript_opset())
    if any(not isinstance(value, torch.Tensor) for _, value in job.leaves):
        reason = "TorchScript cannot take a Python number as an input"
        return None, Attempt("TorchScript", "failed", reason, time.monotonic() - start)
    try:
        model = torchscript_model(job, opset)
    except Exception as error:  # noqa: BLE001  an attempt: kept and shown
        return None, Attempt("TorchScript", "failed", cause_of(error), time.monotonic() - start, error)
    attempt = Attempt("TorchScript", "converted", "", time.monotonic() - start)
    return Candidate(model, opset, records_guards=False), attempt


def lifted(job: Job) -> tuple[Candidate | None, Attempt]:
    from anyshape.conversion.lifting.lifted import lifted

    return lifted(job, LIFTED)


STRATEGIES: tuple[tuple[str, Strategy], ...] = (
    ("torch.export", non_strict),
    (REPAIRED, repaired),
    (CONTROLLED, controlled),
    ("torch.export (strict)", strict),
    ("TorchScript", torchscript),
    (LIFTED, lifted),
)


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
