"""Where a report is written: its name says what it is, and only an ordinary file that is a report is replaced.

Nothing here needs a template or a model, so that the command line can refuse a name before anything is done.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

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
    begins, _ = _form_of(path)
    real = path.resolve()
    check_writable(real.parent)
    if real.exists() and not _is_report(real, begins):
        raise DeclarationError(f"`{text}` is there and is no report: name another file, or remove it first")
    return real


def write_report(document: ReportDocument, path: Path) -> None:
    """Write what the name asks for to a path that was checked; what was there stays if anything goes wrong."""
    from anyshape.onnxfile.placement import ordinary_file, take_over, told_in_a_sentence

    with told_in_a_sentence(path), folder_made(path.parent), temporary_folder(path.parent) as folder:
        new = folder / path.name
        _, text_of = _form_of(path)
        new.write_text(text_of(document), encoding="utf-8", errors="backslashreplace", newline="\n")
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


_Form: TypeAlias = "tuple[bytes, Callable[[ReportDocument], str]]"
"""What stands near the beginning of such a file, and its text."""
_FORMS: Mapping[str, _Form] = {
    ".memory.json": (b'"results"', _node_data("memory")),
    ".flops.json": (b'"results"', _node_data("flops")),
    ".moved.json": (b'"results"', _node_data("moved")),
    ".json": (b'"anyshape_report"', _json),
    ".html": (b'name="generator" content="anyshape"', _page),
}
"""Longer endings first."""


def _form_of(path: Path) -> _Form:
    for ending, form in _FORMS.items():
        if path.name.lower().endswith(ending):
            return form
    raise DeclarationError(f"`{path.name}` is no name for a report: end it in .html for a page, in .json for its data")


def _is_report(path: Path, begins: bytes) -> bool:
    """Whether a file begins as what is written under such a name does; an empty one is nobody's."""
    try:
        with path.open("rb") as file:
            start = file.read(200)
    except OSError:
        return False  # what nobody may read is not known to be a report
    return not start or begins in start
