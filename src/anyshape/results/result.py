"""What `export` and `check` return: the verdict, what was checked, what was found, and the model itself."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from anyshape.errors import AnyshapeError
from anyshape.results.markup import ShownInNotebooks, box, findings_part, table

if TYPE_CHECKING:
    # the command line imports this file for its error: it must not wait for onnx, nor for sympy
    import onnx
    import onnx_ir as ir

    from anyshape.onnxfile.contract import Assumption
    from anyshape.onnxfile.interface import Port
    from anyshape.results.attempt import Attempt
    from anyshape.results.finding import Finding
    from anyshape.results.verification import Verification
    from anyshape.runtime.custom_ops import CustomOps
    from anyshape.sizes.notation import SizeRange


Verdict = Literal["checked", "narrowed", "unchecked", "refused"]
Verb = Literal["export", "check", "make-dynamic"]


@dataclass(frozen=True, repr=False)
class Result(ShownInNotebooks):
    """The outcome of one export or check; `print` it.

    >>> result = anyshape.export(torch.nn.Linear(4, 2), torch.randn(3, 4), dims={"input": "batch 4"})
    >>> str(result.dims["batch"]), result.verification.is_right, result.findings
    ('1..', True, ())
    >>> result(torch.zeros(7, 4))[0].shape
    torch.Size([7, 2])
    """

    verdict: Verdict
    """`checked`, `narrowed`, `unchecked` or `refused`; of a finished export never the last."""
    inputs: tuple[Port, ...] = ()
    """Names, element types and axes: an axis is a size, a dim's name or a formula."""
    outputs: tuple[Port, ...] = ()
    """The same."""
    dims: Mapping[str, SizeRange] = field(default_factory=dict)
    """The sizes that the file is for."""
    limits: tuple[str, ...] = ()
    """What PyTorch itself cannot do: `seq <= 512`."""
    constants: Mapping[str, Any] = field(default_factory=dict)
    """Numbers of the call that are part of the file."""
    attempts: tuple[Attempt, ...] = ()
    """What each strategy came to, in order."""
    repairs: tuple[str, ...] = ()
    """What was put in the place of code that torch would fix to one size."""
    verification: Verification | None = None
    """All runs: sizes, errors, what was cut."""
    findings: tuple[Finding, ...] = ()
    """What there is to change."""
    notes: tuple[str, ...] = ()
    """What else there is to know, a sentence each."""
    path: Path | None = None
    """The file, where one was written or checked."""
    opset: int | None = None
    """Of the file."""
    seconds: float = 0.0
    """For the conversion; `verification.seconds` are apart."""
    given_up: tuple[str, ...] = ()
    """What a narrowed file does not serve although it was declared."""
    where: tuple[str, ...] = ()
    """Relations between dims that were declared."""
    limits_at: Mapping[str, str] = field(default_factory=dict)
    """The line of the model that fails beyond a limit, where it is known."""
    assumptions: tuple[Assumption, ...] = ()
    """What the conversion assumed about sizes, and what became of each: proved, run on both sides, or open."""
    draws: Mapping[str, str] = field(default_factory=dict)
    """Inputs that hold what the model draws, and of which noise: `normal` or `uniform`."""
    shapes: str = "tested"
    """How far shapes are known to hold."""
    what: Verb = "export"
    """The verb that it is the result of: each has its own words in `text.py`."""
    _model: ir.Model | None = field(default=None, repr=False, compare=False)
    _custom_ops: CustomOps | None = field(default=None, repr=False, compare=False)

    @property
    def headline(self) -> str:
        """The first line, which stands alone."""
        from anyshape.results.text import headline_of

        return headline_of(self)

    def __str__(self) -> str:
        from anyshape.results.text import render_result

        return render_result(self)

    def _repr_html_(self) -> str:
        from anyshape.results.text import result_rows

        return box(table(self.headline, result_rows(self)), findings_part(self.findings))

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values for JSON."""
        from anyshape.onnxfile.contract import assumption_to_rows

        return {
            "verdict": self.verdict,
            "shapes": self.shapes,
            "path": None if self.path is None else str(self.path),
            "opset": self.opset,
            "inputs": [port_to_dict(port) for port in self.inputs],
            "outputs": [port_to_dict(port) for port in self.outputs],
            "dims": {dim: str(declared) for dim, declared in self.dims.items()},
            "where": list(self.where),
            "limits": list(self.limits),
            "limits_at": dict(self.limits_at),
            "given_up": list(self.given_up),
            "assumptions": [assumption_to_rows(one) for one in self.assumptions],
            "constants": dict(self.constants),
            **({"draws": dict(self.draws)} if self.draws else {}),
            "attempts": [
                {"strategy": a.strategy, "outcome": a.outcome, "reason": a.reason, "seconds": round(a.seconds, 3)}
                for a in self.attempts
            ],
            "repairs": list(self.repairs),
            "verification": None if self.verification is None else _verification_to_dict(self.verification),
            "findings": [finding.to_dict() for finding in self.findings],
            "notes": list(self.notes),
            "seconds": round(self.seconds, 3),
        }

    def to_json(self) -> str:
        """The same as a text."""
        import json

        return json.dumps(self.to_dict(), ensure_ascii=False, indent=2)

    @property
    def is_own(self) -> bool:
        """Whether the file is of our own making, and its model at hand."""
        return self._model is not None

    def report(self, f: str | os.PathLike[str], *, times: Any = None) -> Path:
        """Write one page to look at (`.html`), or its data (`.json`): verdict, map of sizes, findings, costs, graph.

        `times` is what `anyshape.bench` returned for the same file.
        """
        from anyshape.results.report.assembly import assemble
        from anyshape.results.report.writing import check_report_path, write_report

        path = check_report_path(f)
        write_report(assemble(self, custom_ops=self._custom_ops, times=times), path)
        return path

    # ---- what torch.onnx.ONNXProgram offers

    @property
    def model(self) -> ir.Model:
        """The model as onnx_ir sees it."""
        if self._model is None:
            raise AttributeError("a refused export has no model")
        return self._model

    @property
    def model_proto(self) -> onnx.ModelProto:
        """The model as onnx sees it."""
        import onnx_ir as ir

        return ir.to_proto(self.model)

    def save(self, destination: str | os.PathLike[str], *, external_data: bool | None = None, **ignored: Any) -> None:
        """Write the checked model to another place, as safely as `export` does."""
        del ignored  # torch's further arguments change nothing that was checked
        from anyshape.onnxfile.destination import check_destination
        from anyshape.onnxfile.saving import staged

        with staged(check_destination(destination)) as stage:
            stage.write(self.model, external_data=external_data)
            stage.commit()

    def optimize(self) -> None:
        """Nothing to do: what was checked is what is written."""

    def __call__(self, *args: Any, **kwargs: Any) -> Sequence[Any]:
        """Run the model in ONNX Runtime on tensors in the order of `inputs`, or by name."""
        from anyshape.runtime.model_call import run_model

        return run_model(self.model, self.inputs, args, kwargs, self._custom_ops)


class ExportError(AnyshapeError):
    """Nothing was written, or the checked file is wrong; `result` says why.

    >>> try:
    ...     anyshape.export(lambda x: x.view(2, 3), torch.randn(2, 3), "halves.onnx", dims={"x": "batch 3"})
    ... except anyshape.ExportError as refusal:
    ...     print(refusal.findings[0].headline)
    error[pinned-dim]: `batch` cannot vary
    """

    def __init__(self, result: Result) -> None:
        super().__init__(str(result))
        self.result = result

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Those of the result."""
        return self.result.findings


# ---- as plain values


def port_to_dict(port: Port) -> dict[str, Any]:
    return {"name": port.name, "dtype": port.dtype, "axes": None if port.axes is None else list(port.axes)}


def _verification_to_dict(verification: Verification) -> dict[str, Any]:
    ratio = verification.largest_ratio
    return {
        "runtime": verification.runtime,
        "seconds": round(verification.seconds, 3),
        "largest_error_ratio": ratio if ratio < float("inf") else None,
        "allowed_error_ratio": verification.factor,
        "measure": verification.measure if verification.has_reference else None,
        "computed_in": verification.computed_in,
        "own_type": verification.own_type,
        "against": verification.against if verification.has_reference else None,
        "how": dict(verification.how),
        "sizes_run": [dict(sizes) for sizes in verification.sizes_run],
        "values_run": [{"sizes": dict(c.sizes), "values": c.values} for c in verification.checks if c.values],
        "sizes_not_run": [{"sizes": dict(sizes), "reason": reason} for sizes, reason in verification.skipped],
        "sizes_pytorch_refuses": [dict(sizes) for sizes in verification.invalid],
        "failures": [
            {"sizes": dict(f.sizes), "rule": f.rule, "output": f.output, "sentence": f.sentence}
            for f in verification.failures
        ],
    }
