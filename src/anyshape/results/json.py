"""Results as plain values, for `--json` and for machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anyshape.onnxfile.interface import Port
    from anyshape.results.result import Result
    from anyshape.results.verification import Verification


def result_to_dict(result: Result) -> dict[str, Any]:
    return {
        "verdict": result.verdict,
        "shapes": result.shapes,
        "path": None if result.path is None else str(result.path),
        "opset": result.opset,
        "inputs": [port_to_dict(port) for port in result.inputs],
        "outputs": [port_to_dict(port) for port in result.outputs],
        "dims": {dim: str(declared) for dim, declared in result.dims.items()},
        "where": list(result.where),
        "limits": list(result.limits),
        "given_up": list(result.given_up),
        "constants": dict(result.constants),
        "attempts": [
            {"strategy": a.strategy, "outcome": a.outcome, "reason": a.reason, "seconds": round(a.seconds, 3)}
            for a in result.attempts
        ],
        "repairs": list(result.repairs),
        "verification": None if result.verification is None else _verification(result.verification),
        "findings": [finding.to_dict() for finding in result.findings],
        "notes": list(result.notes),
        "seconds": round(result.seconds, 3),
    }


def port_to_dict(port: Port) -> dict[str, Any]:
    return {"name": port.name, "dtype": port.dtype, "axes": None if port.axes is None else list(port.axes)}


def _verification(verification: Verification) -> dict[str, Any]:
    ratio = verification.largest_ratio
    return {
        "runtime": verification.runtime,
        "seconds": round(verification.seconds, 3),
        "largest_error_ratio": ratio if ratio < float("inf") else None,
        "computed_in": verification.computed_in,
        "against": verification.against,
        "how": dict(verification.how),
        "sizes_run": [dict(sizes) for sizes in verification.sizes_run],
        "sizes_not_run": [{"sizes": dict(sizes), "reason": reason} for sizes, reason in verification.skipped],
        "sizes_pytorch_refuses": [dict(sizes) for sizes in verification.invalid],
        "failures": [
            {"sizes": dict(f.sizes), "rule": f.rule, "output": f.output, "sentence": f.sentence}
            for f in verification.failures
        ],
    }
