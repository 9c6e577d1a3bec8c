"""`report`: a file, checked as `check` does, as one page to look at; or its data, for machines."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from anyshape.errors import DeclarationError
from anyshape.onnxfile.contradictions import contract_of
from anyshape.onnxfile.interface import opset_of, read_interface
from anyshape.onnxfile.untrusted import load_checked
from anyshape.results.markup import ShownInNotebooks, box, paragraph
from anyshape.results.report.assembly import assemble
from anyshape.results.report.document import ReportDocument, times_from
from anyshape.results.report.writing import check_report_path, write_report
from anyshape.results.result import ExportError, Result
from anyshape.runtime.confinement import StoppedError
from anyshape.runtime.custom_ops import understand_custom_ops
from anyshape.sizes.notation import did_you_mean
from anyshape.verbs.check import check, function_of


@dataclass(frozen=True, repr=False)
class Report(ShownInNotebooks):
    """A report that was written: where it is, and what it says."""

    path: Path
    result: Result
    document: ReportDocument

    @property
    def headline(self) -> str:
        """The first line, which stands alone."""
        return f"wrote {self.path.name} ({self.path.stat().st_size / 1000:.0f} kB)"

    def __str__(self) -> str:
        return f"{self.headline}\n{self.result.headline}"

    def _repr_html_(self) -> str:
        return box(paragraph(self.headline), paragraph(self.result.headline))

    def to_dict(self) -> dict[str, Any]:
        """All that the report shows, as plain values for JSON."""
        return self.document.to_dict()


def report(
    f: str | os.PathLike[str],
    out: str | os.PathLike[str],
    model: Any = None,
    args: Any = (),
    *,
    run: bool = True,
    times: Any = None,
    **checking: Any,
) -> Report:
    """Check a file, with or without its model, and write what is known of it to `out`, be it right or wrong.

    - `f`: the file; `model`, `args` and other arguments of `checking`: as in `check`
    - `out`: the page (`.html`), or its data (`.json`)
    - `run`: False writes what the file says about itself, and runs nothing
    - `times`: what `anyshape.bench` returned for the same file

    >>> _ = anyshape.export(torch.nn.Linear(4, 2), torch.randn(3, 4), "linear.onnx", dims={"input": "batch 4"})
    >>> anyshape.report("linear.onnx", "linear.html").result.verdict
    'checked'
    """
    _refuse_unknown(checking)
    path, measured = check_report_path(out), times_from(times)
    trusted = bool(checking.get("trusted")) or model is not None
    result = _checked_result(f, model, args, checking) if run else _unrun(f, "it was not asked for")
    document = assemble(
        result,
        trusted=trusted,
        is_run=run,
        custom_ops=understand_custom_ops(checking.get("custom_ops", ()), function_of),
        times=measured,
    )
    write_report(document, path)
    return Report(path, result, document)


def _checked_result(f: Any, model: Any, args: Any, checking: Mapping[str, Any]) -> Result:
    """What `check` says; a file that it cannot judge is shown without runs, and with the reason."""
    try:
        return check(f, model, args, **checking)
    except ExportError as error:
        return error.result
    except DeclarationError as error:
        is_said_of_the_file = model is None and not any(checking.get(name) for name in _SAID_BY_THE_USER)
        if not is_said_of_the_file and not isinstance(error, StoppedError):
            raise
        return _unrun(f, str(error))


_SAID_BY_THE_USER = ("sizes", "where", "at", "custom_ops", "providers", "budget", "seed")
"""What may be wrong usage; without any of it a file that cannot be judged is to blame itself."""


def _unrun(f: Any, why: str) -> Result:
    """The result of a file of which no run is recorded."""
    proto = load_checked(f)
    interface = read_interface(proto)
    contract, _ = contract_of(proto, interface)
    found = Result("unchecked", interface.inputs, interface.outputs, path=Path(f).absolute(), what="check")
    found = replace(found, opset=opset_of(proto), notes=(f"the file was not run: {why}",))
    if contract is None:
        return found
    said = {"where": tuple(map(str, contract.where)), "limits": tuple(map(str, contract.limits))}
    return replace(found, dims=contract.dims, **said)


def _refuse_unknown(names: Iterable[str]) -> None:
    known = [*inspect.signature(report).parameters, *inspect.signature(check).parameters]
    for name in names:
        if name not in known:
            raise DeclarationError(f"report() has no argument `{name}`{did_you_mean(name, known)}")
