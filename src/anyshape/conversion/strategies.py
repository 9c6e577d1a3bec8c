"""Ways to an ONNX model, in the order in which they are tried. None of them is trusted: the checker decides."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import onnx_ir as ir
import torch

from anyshape._torch import capture
from anyshape._torch.reasons import reason_of
from anyshape._torch.translation import translate_program
from anyshape.conversion import tracing
from anyshape.conversion.repairs import REPAIRS, Acted, Repair, applied
from anyshape.conversion.repairs.custom_operators import CustomOperators, UntranslatedOperatorError
from anyshape.conversion.rotary import spread_rotary_tables
from anyshape.conversion.tracing import Guard, PinnedByTrace
from anyshape.conversion.weights import lay_out_weights
from anyshape.declaration.calls import Adapter
from anyshape.declaration.dims import Spec
from anyshape.declaration.notation import Expression


@dataclass(frozen=True)
class Job:
    """What every strategy starts from: the adapter, its inputs at the traced sizes, and the declaration."""

    adapter: Adapter
    leaves: tuple[tuple[str, Any], ...]
    spec: Spec
    opset: int
    opset_is_fixed: bool = False
    """Whether the user asked for this opset."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of torch's translation that the user gave, such as `custom_translation_table`."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.leaves)


@dataclass(frozen=True)
class Candidate:
    """An ONNX model that nobody has checked yet, and what its trace assumed."""

    model: ir.Model
    opset: int
    guards: tuple[Guard, ...] = ()
    outputs: tuple[tuple[Expression | None, ...], ...] | None = None
    records_guards: bool = True
    """Whether the strategy would have noticed a decision on values; a trace of real tensors does not."""
    repairs: tuple[str, ...] = ()
    """What was replaced during the trace, a sentence each."""
    suspects: tuple[int, ...] = ()
    """Sizes at which a repair may not hold."""
    simpler: Callable[[], tuple[Candidate | None, Attempt]] | None = None
    """The same trace without operators that runtimes implement narrowly; worth a try where this model is wrong."""


@dataclass(frozen=True)
class Attempt:
    """One strategy's try: how it ended, why, and how long it took."""

    strategy: str
    outcome: str
    """`checked`, `narrowed`, `wrong`, `failed` or `skipped`."""
    reason: str = ""
    seconds: float = 0.0
    error: BaseException | None = field(default=None, compare=False, repr=False)
    pins: tuple[PinnedByTrace, ...] = ()
    guards: tuple[Guard, ...] = field(default=(), compare=False, repr=False)
    """What the trace assumed: a further strategy may have no record of its own."""


Try = Callable[[], tuple[Candidate | None, Attempt]]
Strategy = Callable[[Job], tuple[Candidate | None, Attempt]]


def _by_export(
    job: Job, name: str, repairs: Sequence[Repair], *, strict: bool
) -> tuple[Candidate | None, Attempt, Acted]:
    """torch.export, then torch's translation, with the record of assumptions kept through both."""
    start = time.monotonic()
    custom = CustomOperators(job.extra.get("custom_translation_table", {}), job.opset)
    with capture.recording() as recorder, applied((*repairs, custom.repair)) as acted:
        try:
            program = tracing.trace(job.adapter, job.leaves, job.spec, strict=strict)
            custom.refuse_untranslated(program)
            meaning = tracing.meaning_of(recorder, job.names, job.spec)
            outputs = tracing.output_expressions(program, meaning)
            model = _translated(program, job, job.opset)
        except Exception as error:  # noqa: BLE001  an attempt: kept and shown
            meaning = tracing.meaning_of(recorder, job.names, job.spec)
            pins, guards = tracing.pins_of(recorder, meaning), tracing.guards_of(recorder, meaning)
            reason = _reason(error, pins)
            return None, Attempt(name, "failed", reason, time.monotonic() - start, error, pins, guards), acted
    guards = tracing.guards_of(recorder, meaning)
    pins = tracing.pins_of(recorder, meaning)
    attempt = Attempt(name, "converted", "", time.monotonic() - start, None, pins, guards)
    suspects = tuple(sorted(acted.suspects))
    candidate = Candidate(model, job.opset, guards, outputs, repairs=tuple(acted.sentences), suspects=suspects)
    if _holds_newest_operators(model) and not job.opset_is_fixed:
        candidate = replace(candidate, simpler=lambda: _in_simpler_operators(name, program, job, candidate))
    return candidate, attempt, acted


def _translated(program: torch.export.ExportedProgram, job: Job, opset: int) -> ir.Model:
    model = translate_program(program, opset, job.extra)
    lay_out_weights(model)
    spread_rotary_tables(model)
    return model


_NEWEST_OPERATORS = {"Attention", "RMSNormalization", "RotaryEmbedding", "TensorScatter", "Swish"}
"""Operators of opset 23 and later: fast, but ONNX Runtime does not take all shapes that their definition allows."""
_SIMPLER_OPSET = 20


def _holds_newest_operators(model: ir.Model) -> bool:
    return any(node.op_type in _NEWEST_OPERATORS for node in ir.traversal.RecursiveGraphIterator(model.graph))


def _in_simpler_operators(
    name: str, program: torch.export.ExportedProgram, job: Job, candidate: Candidate
) -> tuple[Candidate | None, Attempt]:
    start = time.monotonic()
    name = f"{name}, opset {_SIMPLER_OPSET}"
    try:
        model = _translated(program, job, _SIMPLER_OPSET)
    except Exception as error:  # noqa: BLE001  an attempt: kept and shown
        return None, Attempt(name, "failed", _reason(error), time.monotonic() - start, error)
    twin = replace(candidate, model=model, opset=_SIMPLER_OPSET, simpler=None)
    return twin, Attempt(name, "converted", "", time.monotonic() - start)


REPAIRED = "torch.export with repairs"
_ALWAYS = tuple(repair for repair in REPAIRS if repair.always)


def non_strict(job: Job) -> tuple[Candidate | None, Attempt]:
    candidate, attempt, _ = _by_export(job, "torch.export", _ALWAYS, strict=False)
    return candidate, attempt


def repaired(job: Job) -> tuple[Candidate | None, Attempt]:
    """Once more, with the repairs that a healthy model does without."""
    candidate, attempt, acted = _by_export(job, REPAIRED, REPAIRS, strict=False)
    if not acted.beyond_the_plain_way:
        return None, Attempt(REPAIRED, "skipped", "no repair applies", attempt.seconds)
    return candidate, attempt


def strict(job: Job) -> tuple[Candidate | None, Attempt]:
    candidate, attempt, _ = _by_export(job, "torch.export (strict)", _ALWAYS, strict=True)
    return candidate, attempt


def torchscript(job: Job) -> tuple[Candidate | None, Attempt]:
    """The older exporter: it traces with real tensors, so it knows no symbols and makes no guards."""
    start = time.monotonic()
    opset = min(job.opset, capture.newest_torchscript_opset())
    if any(not isinstance(value, torch.Tensor) for _, value in job.leaves):
        reason = "TorchScript cannot take a Python number as an input"
        return None, Attempt("TorchScript", "failed", reason, time.monotonic() - start)
    try:
        model = _torchscript_model(job, opset)
    except Exception as error:  # noqa: BLE001  an attempt: kept and shown
        return None, Attempt("TorchScript", "failed", _reason(error), time.monotonic() - start, error)
    attempt = Attempt("TorchScript", "converted", "", time.monotonic() - start)
    return Candidate(model, opset, records_guards=False), attempt


def _torchscript_model(job: Job, opset: int) -> ir.Model:
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


STRATEGIES: tuple[tuple[str, Strategy], ...] = (
    ("torch.export", non_strict),
    (REPAIRED, repaired),
    ("torch.export (strict)", strict),
    ("TorchScript", torchscript),
)


def _reason(error: BaseException, pins: Sequence[PinnedByTrace] = ()) -> str:
    """One line about why a strategy failed: the dims that it pinned, or what torch said."""
    if pins:
        return "; ".join(f"`{pin.dim}` became {pin.size}" + (f" at {pin.span}" if pin.span else "") for pin in pins)
    return str(error) if isinstance(error, UntranslatedOperatorError) else reason_of(error)
