"""The results of a sweep as one HTML page: a row for each entry, a cell for each column, filters, and no network."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from anyshape.fleet.result_lines import GOOD, OUTCOMES, TaskRecord
from anyshape.onnxfile.destination import replace_text

REPORTS = "reports/"
"""Below the folder of results."""
_TEMPLATE = "table_page.html"


@dataclass(frozen=True)
class _Row:
    name: str
    tags: tuple[str, ...]
    cells: Sequence[TaskRecord | None]

    @property
    def worst(self) -> int:
        return max(cell.rank for cell in self.cells if cell is not None)


def write_page(path: Path, records: Iterable[TaskRecord]) -> None:
    """Replace the page whole."""
    replace_text(path, page_of(records, path.parent))


def page_of(records: Iterable[TaskRecord], folder: Path) -> str:
    """`folder` is where the page will stand: reports are linked to where they exist."""
    from jinja2 import Environment, PackageLoader

    every = sorted(records, key=lambda one: one.key)
    columns = list(dict.fromkeys(one.column for one in every))
    environment = Environment(loader=PackageLoader("anyshape.fleet", ""), autoescape=True, trim_blocks=True)
    environment.filters["report"] = lambda record: _report_link(record, folder)
    outcomes = [one for one in OUTCOMES if any(record.outcome == one for record in every)]
    others = sorted({record.outcome for record in every}.difference(OUTCOMES))
    return environment.get_template(_TEMPLATE).render(
        rows=list(_rows(every, columns)), columns=columns, outcomes=[*outcomes, *others], good=GOOD,
        tags=sorted({tag for one in every for tag in one.tags}), totals=_totals(every, columns),
    )  # fmt: skip


def _rows(records: Sequence[TaskRecord], columns: Sequence[str]) -> Iterable[_Row]:
    by_key = {record.key: record for record in records}
    for name in dict.fromkeys(record.name for record in records):
        cells = [by_key.get((name, column)) for column in columns]
        tags = dict.fromkeys(tag for cell in cells if cell is not None for tag in cell.tags)
        yield _Row(name, tuple(tags), cells)


def _totals(records: Sequence[TaskRecord], columns: Sequence[str]) -> list[dict[str, Any]]:
    found = []
    for column in columns:
        mine = [record for record in records if record.column == column]
        good = sum(record.is_good for record in mine)
        found.append({"column": column, "count": len(mine), "good": good, "cpu": sum(one.cpu_seconds for one in mine)})
    return found


def _report_link(record: TaskRecord, folder: Path) -> str:
    return quote(record.report) if _has_report(record, folder) else ""


def _has_report(record: TaskRecord, folder: Path) -> bool:
    """Only a page below the folder that is there; a record is data, and its link may be anything."""
    parts = PurePosixPath(record.report).parts
    if not parts or ".." in parts or record.report.startswith("/"):
        return False
    place = folder / record.report
    return place.is_file() and place.resolve().is_relative_to(folder.resolve())


def bring_reports(source: Path, destination: Path, records: Iterable[TaskRecord]) -> None:
    """The pages that records link to, to where their page will stand; the later one counts, as of their results."""
    if source.resolve() == destination.resolve():
        return
    for record in records:
        if record.report.startswith(REPORTS) and _has_report(record, source):
            place = destination / record.report
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / record.report, place)
