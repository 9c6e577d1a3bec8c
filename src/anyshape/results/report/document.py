"""The document behind a report: everything that its page shows, as plain values for JSON."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from anyshape import __version__
from anyshape.errors import DeclarationError
from anyshape.onnxfile.contract import Contract, assumption_to_rows
from anyshape.results.report.size_map import SizeMap, map_of
from anyshape.results.text import edit_rows, quoted_line, result_rows, trial_of
from anyshape.sizes.notation import Sizes

if TYPE_CHECKING:
    from anyshape.onnxfile.interface import Port
    from anyshape.results.finding import Finding
    from anyshape.results.result import Result
    from anyshape.source.edits import Edit

FORMAT = 1
"""Raised when a reader of the last one would misread the next."""


@dataclass(frozen=True)
class ReportDocument:
    """One file, or one refusal, and all that is known of it."""

    result: Result
    contract: Contract | None = None
    """What the file says of itself."""
    costs: Mapping[str, Any] | None = None
    """Shapes, bytes and FLOPs as formulas of the dims; None where there is no file."""
    graph: Mapping[str, Any] | None = None
    times: Mapping[str, Any] | None = None
    """What `anyshape bench` measured; None where it did not."""

    @cached_property
    def size_map(self) -> SizeMap:
        return map_of(self.result)

    def to_dict(self) -> dict[str, Any]:
        """In an order that is always the same, without times of the day and without absolute paths."""
        return {
            "anyshape_report": FORMAT,
            "file": file_of(self.result),
            "verdict": _verdict_part(self.result, self.contract),
            "map": self.size_map.to_dict(),
            "findings": [_finding_part(finding) for finding in self.result.findings],
            "costs": self.costs,
            "graph": self.graph,
            "times": self.times,
        }


def file_of(result: Result) -> str:
    return "model" if result.path is None else result.path.name


# ---- the verdict, and what it rests on


_TOLD_ELSEWHERE = ("input", "output", "dims", "where", "limit", "assumed", "given up", "took", "not run", "run", "note")
"""Rows of the text that have a place of their own on the page, or differ from run to run."""


def _verdict_part(result: Result, contract: Contract | None) -> dict[str, Any]:
    verification = result.verification
    return {
        "verdict": result.verdict,
        "verb": result.what,
        "headline": result.headline,
        "sentence": _sentence(result),
        "sizes_run": len(verification.sizes_run) if verification is not None else 0,
        "versions": dict(_versions(result, contract)),
        "inputs": [_port_part(port, ()) for port in result.inputs],
        "outputs": [_port_part(port, _formulas(port, contract)) for port in result.outputs],
        "where": list(result.where),
        "limits": [{"text": one, "place": result.limits_at.get(one, "")} for one in result.limits],
        "given_up": list(result.given_up),
        "assumptions": [
            assumption_to_rows(one) for one in result.assumptions or (contract.assumptions if contract else ())
        ],
        "not_run": _not_run(result),
        "facts": list(_facts(result, contract)),
        "notes": list(result.notes),
    }


def _sentence(result: Result) -> str:
    """The headline without its first word, which stands apart; of a refusal with its first reason."""
    _, _, sentence = result.headline.partition(": ")
    if result.verdict != "refused":
        return sentence
    reason = next((f": {finding.message}" for finding in result.findings if finding.level == "error"), "")
    return f"{sentence[:1].upper()}{sentence[1:]}{reason}"


def _versions(result: Result, contract: Contract | None) -> Iterator[tuple[str, str]]:
    """Of what took part, and of nothing else."""
    yield "anyshape", __version__
    if contract is not None and contract.version not in ("", __version__):
        yield "written by anyshape", contract.version
    runtime = result.verification.runtime if result.verification is not None else ""
    name, _, version = runtime.rpartition(" ")
    if name:
        yield name, version
    torch = sys.modules.get("torch")
    if torch is not None and _is_of_torch(result):
        yield "PyTorch", str(torch.__version__)
    if result.opset is not None:
        yield "opset", str(result.opset)


def _is_of_torch(result: Result) -> bool:
    """Whether the model itself took part."""
    verification = result.verification
    compared = verification is not None and verification.has_reference and verification.against == "PyTorch"
    return result.what == "export" or compared


def _facts(result: Result, contract: Contract | None) -> Iterator[list[str]]:
    """What else the text tells, and of a file by others what it says of itself."""
    yield from ([label, text] for label, text in result_rows(result) if label not in _TOLD_ELSEWHERE)
    if contract is not None and result.what == "check":
        says = f"{contract.verdict} by anyshape {contract.version}".rstrip()
        yield ["contract", says if contract.evidence is None else f"{says} {contract.evidence}"]


def _port_part(port: Port, formulas: Sequence[str]) -> dict[str, Any]:
    axes = None if port.axes is None else ["?" if axis is None else str(axis) for axis in port.axes]
    return {"name": port.name, "dtype": port.dtype, "axes": axes, "formulas": list(formulas)}


def _formulas(port: Port, contract: Contract | None) -> tuple[str, ...]:
    """Where the contract has another word for an axis than its label."""
    found = contract.outputs.get(port.name, ()) if contract is not None else ()
    return found if port.axes is not None and len(found) == len(port.axes) else ()


def _not_run(result: Result) -> list[dict[str, Any]]:
    """Every reason for which planned sizes were not run, with how many they were and the largest of them."""
    found: dict[str, list[Sizes]] = {}
    for sizes, reason in result.verification.skipped if result.verification is not None else ():
        found.setdefault(reason, []).append(sizes)
    return [{"reason": reason, "count": len(cut), "largest": _largest(cut)} for reason, cut in found.items()]


def _largest(cut: Sequence[Sizes]) -> dict[str, int]:
    sums = [sum(sizes.values()) for sizes in cut]
    return dict(cut[sums.index(max(sums))])


# ---- findings


def _finding_part(finding: Finding) -> dict[str, Any]:
    quoted = quoted_line(finding)
    line = None if quoted is None else {"number": finding.span.line, "text": quoted[0], "underline": quoted[1]}
    return {
        "level": finding.level,
        "rule": finding.rule,
        "message": finding.message,
        "place": str(finding.span) if finding.span.is_known else "",
        "span": dataclasses.asdict(finding.span),
        "line": line,
        "notes": list(finding.notes),
        "helps": list(finding.helps),
        "dims": list(finding.dims),
        "origin": finding.origin,
        "breaks_at": None if finding.breaks_at is None else dict(finding.breaks_at),
        "edit": None if finding.edit is None else _edit_part(finding.edit),
    }


def _edit_part(edit: Edit) -> dict[str, Any]:
    """Without the rest of the file: a report is shown to others."""
    rows = [list(row) for row in edit_rows(edit)]
    return {"title": edit.title, "trial": trial_of(edit), "safe": edit.safe, "rows": rows, "diff": edit.diff}


# ---- what was measured


def times_from(measured: Any) -> dict[str, Any] | None:
    """What `anyshape bench` measured, from its result or from its JSON; one sentence for what is neither."""
    found = measured.to_dict() if hasattr(measured, "to_dict") else measured
    if found is None or _are_times(found):
        return found  # type: ignore[no-any-return]
    raise DeclarationError("times holds no measurements: give what anyshape.bench returned, or its JSON")


def _are_times(found: Any) -> bool:
    try:
        whole = all(len(one["points"]) == len(found["sizes"]) and str(one["name"]) for one in found["series"])
        points = [point for one in found["series"] for point in one["points"] if point is not None]
        numbers = [point[key] for point in points for key in ("median", "low", "high")]
        numbers += [size for sizes in found["sizes"] for size in sizes.values()] + [
            *(found.get("nodes") or {}).values()
        ]
    except (TypeError, KeyError, AttributeError):
        return False
    return whole and bool(points) and all(isinstance(one, (int, float)) for one in numbers)


def rules_of(findings: Iterable[Finding]) -> list[str]:
    """The rules of findings, each once."""
    return list(dict.fromkeys(finding.rule for finding in findings))
