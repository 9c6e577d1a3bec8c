"""The tables at the end: counts by source and exporter, then what fell short and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

Kept = Mapping[str, Mapping[str, Mapping[str, Any]]]


_HEADINGS = ("source", "exporter", "entries", "verified", "refused", "wrong", "median CPU s", "converting")


def show_totals(console: Console, kept: Kept, exporters: Sequence[str]) -> None:
    table = Table(title="Real models, all natural dims dynamic", title_justify="left")
    for heading in _HEADINGS:
        table.add_column(heading, justify="left" if heading in ("source", "exporter") else "right")
    sources = list(dict.fromkeys(name.split(".")[0] for name in kept))
    for source in [*sources, "all"] if len(sources) > 1 else sources:
        for exporter in exporters:
            rows = [
                record[exporter]
                for name, record in kept.items()
                if exporter in record and source in (name.split(".")[0], "all")
            ]
            table.add_row(source, exporter, *_cells(rows))
        table.add_section()
    console.print(table)


def _cells(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    counts = Counter(row["outcome"] for row in rows)
    total = len(rows) - counts["defect"]
    share = f" ({counts['verified'] / total:.0%})" if total else ""
    seconds = [row["seconds"] for row in rows if row["outcome"] == "verified" and "seconds" in row]
    converting = [row["converting"] for row in rows if row["outcome"] == "verified" and "converting" in row]
    verified = f"{counts['verified']}{share}"
    return [
        str(total), verified, str(counts["refused"]), str(counts["wrong"]),
        f"{median(seconds):.2f}" if seconds else "-", f"{median(converting):.2f}" if converting else "-",
    ]  # fmt: skip


def show_shortfalls(console: Console, kept: Kept, exporters: Sequence[str]) -> None:
    """What was not verified, and verified files that say of a size that they cannot do it."""
    for exporter in exporters:
        for outcome in ("wrong", "refused", "defect"):
            rows = [(n, r[exporter]) for n, r in kept.items() if r.get(exporter, {}).get("outcome") == outcome]
            if rows:
                console.print(f"\n[bold]{exporter}: {outcome} ({len(rows)})[/bold]")
            for name, record in rows:
                _tell(console, name, record.get("cause", ""))
    narrow = [(name, record["anyshape"]["excluded"][0]) for name, record in kept.items() if _is_narrow(record)]
    if narrow:
        console.print(
            f"\n[bold]anyshape: verified, but a limit excludes a size at which PyTorch runs ({len(narrow)})[/bold]"
        )
    for name, text in narrow:
        _tell(console, name, text)


def _is_narrow(record: Mapping[str, Mapping[str, Any]]) -> bool:
    return bool(record.get("anyshape", {}).get("excluded"))


def _tell(console: Console, name: str, text: str) -> None:
    console.print(f"  {escape(name)}: {escape(text)}", soft_wrap=True, highlight=False)
