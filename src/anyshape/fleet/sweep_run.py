"""One sweep: what is left to run goes to an engine, each result to its line, and all to a summary and a page."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anyshape.errors import DeclarationError
from anyshape.fleet.result_lines import OUTCOMES, Journal, TaskRecord, journal_at, left_to_run, lines_path, read_records
from anyshape.fleet.table_page import write_page
from anyshape.fleet.tasks import Shard, Task, refuse_one_key_twice

Engine = Callable[[Sequence[Task], Mapping[tuple[str, str], TaskRecord]], Iterator[TaskRecord]]
"""Runs tasks, knowing earlier results, and yields a record of each as it ends."""
Show = Callable[[TaskRecord], None]


@dataclass(frozen=True)
class SweepWishes:
    """What is to become of results that are there already."""

    folder: Path
    shard: Shard = field(default_factory=Shard)
    resume: bool = False
    again: tuple[str, ...] = ()
    """Outcomes that are tried once more."""
    only: str = ""
    """A regular expression: what is found by it in its name or a tag is run, and what is not stays as it was."""

    def __post_init__(self) -> None:
        try:
            re.compile(self.only)
        except re.error as error:
            raise DeclarationError(f"--only `{self.only}` is no regular expression: {error}") from None

    def chooses(self, task: Task) -> bool:
        return any(re.search(self.only, text) for text in (task.name, *task.tags))

    @property
    def lines(self) -> Path:
        return lines_path(self.folder, self.shard)


@dataclass(frozen=True)
class SweepSummary:
    """What the tasks of a sweep have come to; `print` it."""

    records: Mapping[tuple[str, str], TaskRecord]
    lines: Path
    page: Path
    ran: int
    """How many were run now; the others had a result."""

    def __str__(self) -> str:
        kept = len(self.records) - self.ran
        before = f", {kept} of them earlier" if kept else ""
        rows = [f"swept: {len(self.records)} result{'s' if len(self.records) != 1 else ''}{before}"]
        rows += [f"  {column:<12} {_counts_text(counts)}" for column, counts in _counts_by_column(self.records).items()]
        return "\n".join(
            [*rows, f"  lines        {_path_from_here(self.lines)}", f"  page         {_path_from_here(self.page)}"]
        )

    def to_dict(self) -> dict[str, Any]:
        columns = {column: dict(counts) for column, counts in _counts_by_column(self.records).items()}
        return {"results": len(self.records), "ran": self.ran, "columns": columns, "lines": str(self.lines),
                "page": str(self.page)}  # fmt: skip


def _path_from_here(path: Path) -> str:
    """As a user would write it from here."""
    return str(path.relative_to(Path.cwd())) if path.is_absolute() and path.is_relative_to(Path.cwd()) else str(path)


def _counts_by_column(records: Mapping[tuple[str, str], TaskRecord]) -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = {}
    for record in records.values():
        found.setdefault(record.column, Counter())[record.outcome] += 1
    return found


def _counts_text(counts: Counter[str]) -> str:
    order = sorted(counts, key=lambda one: OUTCOMES.index(one) if one in OUTCOMES else len(OUTCOMES))
    return ", ".join(f"{counts[outcome]} {outcome}" for outcome in order)


@dataclass(frozen=True)
class OpenedSweep:
    """What is left to run, and the results that stay; nobody else writes to its lines meanwhile."""

    left: Sequence[Task]
    known: Mapping[tuple[str, str], TaskRecord]
    lines: Path
    journal: Journal

    def run(self, engine: Engine, show: Show) -> SweepSummary:
        """Every result is on the disk before it is shown; whoever stops it has a page of what there is."""
        records, ran, page = dict(self.known), 0, self.lines.with_suffix(".html")
        try:
            for record in engine(self.left, self.known):
                self.journal.append(record)
                records[record.key] = record
                ran += 1
                show(record)
        finally:
            write_page(page, records.values())
        return SweepSummary(records, self.lines, page, ran)


@contextlib.contextmanager
def opened_sweep(tasks: Iterable[Task], wishes: SweepWishes) -> Iterator[OpenedSweep]:
    """Earlier results are read when no other sweep can add to them any more: what two have run would stand twice."""
    every = list(tasks)
    if every and not any(map(wishes.chooses, every)):
        raise DeclarationError(f"--only `{wishes.only}` is found in no name and no tag, such as `{every[0].name}`")
    mine = wishes.shard.part_of(every)
    refuse_one_key_twice(mine)
    with journal_at(wishes.lines) as journal:
        left, known = _what_is_left(mine, wishes)
        yield OpenedSweep(left, known, wishes.lines, journal)


def _what_is_left(mine: Sequence[Task], wishes: SweepWishes) -> tuple[list[Task], dict[tuple[str, str], TaskRecord]]:
    known: dict[tuple[str, str], TaskRecord] = {}
    if wishes.lines.stat().st_size:
        if not wishes.resume:
            raise DeclarationError(
                f"`{wishes.lines}` holds results: --resume goes on with them, or name another folder"
            )
        known = read_records(wishes.lines)
    left = left_to_run(filter(wishes.chooses, mine), known, wishes.again)
    run_again = {task.key for task in left}
    return left, {key: record for key, record in known.items() if key not in run_again}
