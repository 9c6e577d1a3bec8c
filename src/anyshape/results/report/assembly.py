"""From a result to the document of its report: the file is read once more for its contract, its costs and its graph."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyshape.errors import AnyshapeError
from anyshape.results.report.document import ReportDocument, times_from

if TYPE_CHECKING:
    from anyshape.costs.file_costs import FileCosts, NodeCosts
    from anyshape.results.finding import Finding
    from anyshape.results.result import Result
    from anyshape.runtime.custom_ops import CustomOps


def assemble(
    result: Result,
    *,
    trusted: bool = False,
    is_run: bool = True,
    custom_ops: CustomOps | None = None,
    times: Any = None,
) -> ReportDocument:
    """All that is known of a result, and what was measured. A stranger's file runs in a process of its own."""
    times = times_from(times)
    with _file_of(result) as path:
        if path is None:
            return ReportDocument(result, times=times)
        from anyshape.onnxfile.contradictions import contract_of
        from anyshape.onnxfile.interface import read_interface
        from anyshape.onnxfile.untrusted import load_checked
        from anyshape.runtime.confinement import confined

        proto = load_checked(path)
        contract, _ = contract_of(proto, read_interface(proto))
        document = ReportDocument(result, contract, times=times)
        with confined(path, proto, trusted=trusted or result.is_own or not is_run):
            return _with_costs(document, path, custom_ops, is_run=is_run)


def _with_costs(document: ReportDocument, path: Path, custom_ops: CustomOps | None, *, is_run: bool) -> ReportDocument:
    from anyshape.costs.account import costs_of
    from anyshape.results.report.graph_layout import graph_document

    try:
        costs = costs_of(path, start=document.size_map.start, custom_ops=custom_ops, is_run=is_run)
    except AnyshapeError as error:  # a file that was stopped still has a verdict to show
        result = document.result
        return replace(document, result=replace(result, notes=(*result.notes, f"no costs are known: {error}")))
    costs = _with_faults(costs, document.result.findings)
    return replace(document, costs=costs.to_dict(), graph=graph_document(costs))


def _with_faults(costs: FileCosts, findings: Sequence[Finding]) -> FileCosts:
    """Every node with the finding that is about it."""
    return replace(costs, nodes=tuple(replace(node, fault=_fault_of(node, findings)) for node in costs.nodes))


def _fault_of(node: NodeCosts, findings: Sequence[Finding]) -> str | None:
    """That of the first finding that names the node, or whose line it comes from."""
    for finding in findings:
        is_named = bool(node.name) and any(f"`{node.name}`" in text for text in (finding.message, *finding.notes))
        if is_named or (finding.span.is_known and node.source == f"{finding.span.path}:{finding.span.line}"):
            return finding.headline
    return None


@contextlib.contextmanager
def _file_of(result: Result) -> Iterator[Path | None]:
    """The file that a result speaks of; one that was never written stands in a temporary folder meanwhile."""
    from anyshape.onnxfile.saving import staged

    if result.path is not None and result.path.is_file() and (result.verdict != "refused" or result.what == "check"):
        yield result.path
    elif result.verdict == "refused" or not result.is_own:
        yield None
    else:
        with staged(None) as stage:
            stage.write(result.model)
            yield stage.path
