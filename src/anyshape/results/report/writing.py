"""Where a report is written: its name says what it is, and only an ordinary file that is a report is replaced.

Nothing here needs a template or a model, so that the command line can refuse a name before anything is done.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from anyshape.errors import DeclarationError
from anyshape.onnxfile.destination import check_writable, folder_made, kind_at, refuse_foreign
from anyshape.onnxfile.temporary_folders import temporary_folder

if TYPE_CHECKING:
    from anyshape.results.report.document import ReportDocument


def check_report_path(f: str | os.PathLike[str]) -> Path:
    """The path of the report to write, links followed, or one sentence about why not."""
    if not isinstance(f, (str, os.PathLike)):
        raise DeclarationError(f"`f` is a {type(f).__name__}: pass the path of the report to write")
    path, text = Path(f), os.fspath(f)
    refuse_foreign(text)
    if kind_at(path) == "a folder" or text.endswith(("/", os.sep)):
        raise DeclarationError(f"`{text}` is a folder: name a file in it, such as `{path / 'report.html'}`")
    writer = _writer_for(path)
    real = path.resolve()
    check_writable(real.parent)
    if real.exists() and not _is_report(real, writer):
        raise DeclarationError(f"`{text}` is there and is no report: name another file, or remove it first")
    return real


def write_report(document: ReportDocument, path: Path) -> None:
    """Write what the name asks for to a path that was checked; what was there stays if anything goes wrong."""
    from anyshape.onnxfile.placement import ordinary_file, take_over, told_in_a_sentence

    with told_in_a_sentence(path), folder_made(path.parent), temporary_folder(path.parent) as folder:
        new = folder / path.name
        new.write_text(_writer_for(path)(document), encoding="utf-8", errors="backslashreplace", newline="\n")
        take_over(ordinary_file(path), path, new)
        new.replace(path)


# ---- what the name asks for


def _page(document: ReportDocument) -> str:
    from anyshape.results.report.page import render_page

    return render_page(document)


def _json(document: ReportDocument) -> str:
    return json.dumps(document.to_dict(), indent=1, allow_nan=False) + "\n"


def _node_data(what: str) -> Callable[[ReportDocument], str]:
    def text(document: ReportDocument) -> str:
        from anyshape.results.report.node_data import node_data

        return json.dumps(node_data(document, what), indent=1, allow_nan=False) + "\n"

    return text


_WRITERS: Mapping[str, Callable[[ReportDocument], str]] = {
    ".memory.json": _node_data("memory"),
    ".flops.json": _node_data("flops"),
    ".moved.json": _node_data("moved"),
    ".json": _json,
    ".html": _page,
    ".htm": _page,
}
"""Longer endings first."""


def _writer_for(path: Path) -> Callable[[ReportDocument], str]:
    for ending, writer in _WRITERS.items():
        if path.name.lower().endswith(ending):
            return writer
    raise DeclarationError(f"`{path.name}` is no name for a report: end it in .html for a page, in .json for its data")


def _is_report(path: Path, writer: Callable[[ReportDocument], str]) -> bool:
    """Whether a file begins as what is written under such a name does; an empty one is nobody's."""
    begins = {_page: b'name="generator" content="anyshape"', _json: b'"anyshape_report"'}.get(writer, b'"results"')
    try:
        with path.open("rb") as file:
            start = file.read(200)
    except OSError:
        return False  # what nobody may read is not known to be a report
    return not start or begins in start
