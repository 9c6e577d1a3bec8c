"""What a sweep of benchmarks/coverage.py has come to, kept in coverage.json, and the table of docs/coverage.md.

Run: python benchmarks/coverage_tables.py RESULTS [--keep]
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from anyshape.fleet.result_lines import TaskRecord, read_records
from figures import PACKAGES, Kept, keep, place_of, read, this_run

EXPORTERS = {
    "anyshape": "anyshape",
    "dynamo": "`torch.onnx.export(dynamo=True)`",
    "torchscript": "`torch.onnx.export(dynamo=False)`",
}
"""The columns of the collection, and what they are called."""

Rows = dict[str, dict[str, Any]]


# ---- from a line of the sweep to what is kept


def row_of(record: TaskRecord) -> dict[str, Any]:
    """Times are the exporter's alone, without loading, judging and the page of a report."""
    spent = record.details.get("cpu", {})
    seconds = {name: spent[name] for name in spent if name not in (*_BESIDE, "judging")}
    row = {
        "outcome": outcome_of(record), "seconds": round(sum(seconds.values()), 2),
        "converting": round(spent.get("converting", 0.0), 2), "cause": one_line(record.cause),
        **{name: record.details.get(name) for name in ("strategy", "repairs", "limits")},
    }  # fmt: skip
    return {name: value for name, value in row.items() if value or name in ("outcome", "seconds")}


def outcome_of(record: TaskRecord) -> str:
    """What ends a process while it exports has written nothing; a file with which it ends is wrong."""
    if record.is_good:
        return "verified"
    if record.outcome in ("refused", "wrong", "defect"):
        return record.outcome
    return "wrong" if record.stage == "judging" else "defect" if record.stage in _BESIDE else "refused"


_BESIDE = ("starting", "loading", "reporting")
"""Stages that are no exporter's."""


_PATH = re.compile(r"(?<![\w.:/])(?:/[\w.+@-]+)+/([\w.+@-]+)")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}")


def one_line(text: str) -> str:
    """Nothing about the machine."""
    return _ADDRESS.sub("0x", _PATH.sub(r"\1", text))[:240]


def tables_of(records: Iterable[TaskRecord]) -> dict[str, Rows]:
    found: dict[str, Rows] = {exporter: {} for exporter in EXPORTERS}
    for record in records:
        if record.column in found:
            found[record.column][record.name] = row_of(record)
    return found


# ---- the table of docs/coverage.md


def counts(rows: Mapping[str, Mapping[str, Any]]) -> Counter[str]:
    return Counter(row["outcome"] for row in rows.values())


def table() -> str:
    """How many come out right by each exporter, by which strategy ours go, and when that was measured."""
    kept = read("coverage")
    lines = ["| exporter | right | refused | wrong |", "|---|---|---|---|"]
    for exporter, name in EXPORTERS.items():
        found = counts(kept.table(exporter))
        lines.append(f"| {name} | {found['verified']} | {found['refused']} | {found['wrong']} |")
    strategies = Counter(row["strategy"] for row in kept.table("anyshape").values() if "strategy" in row)
    told = ", ".join(f"{count} by {name}" for name, count in strategies.most_common())
    when = (f"- {name}: {kept.measured(exporter)}" for exporter, name in EXPORTERS.items())
    return "\n".join([*lines, "", f"Of ours, {told}.", "", *when]) + "\n"


# ---- in a terminal


def totals(tables: Mapping[str, Rows]) -> str:
    """Counts and times, the latter of what is right."""
    lines = [f"{'source':<7} {'exporter':<12} entries verified refused wrong  median CPU s  converting"]
    sources = list(dict.fromkeys(name.split(".")[0] for rows in tables.values() for name in rows))
    for source in [*sources, "all"] if len(sources) > 1 else sources:
        for exporter, rows in tables.items():
            mine = {name: row for name, row in rows.items() if source in (name.split(".")[0], "all")}
            if mine:
                lines.append(f"{source:<7} {exporter:<12} {_cells(mine)}")
    return "\n".join(lines)


def _cells(rows: Mapping[str, Mapping[str, Any]]) -> str:
    found, right = counts(rows), [row for row in rows.values() if row["outcome"] == "verified"]
    times = [[row[name] for row in right if name in row] for name in ("seconds", "converting")]
    shown = [f"{median(each):.2f}" if each else "-" for each in times]
    total = len(rows) - found["defect"]
    return f"{total:>7} {found['verified']:>8} {found['refused']:>7} {found['wrong']:>5} {shown[0]:>13} {shown[1]:>11}"


def shortfalls(tables: Mapping[str, Rows]) -> Sequence[str]:
    """What was not verified, and verified files that say of a judged size that they cannot do it."""
    lines = [
        f"{exporter}: {row['outcome']}: {name}: {row.get('cause', '')}"
        for exporter, rows in tables.items() for name, row in rows.items() if row["outcome"] != "verified"
    ]  # fmt: skip
    narrow = ((name, excluded(name, row["limits"])) for name, row in tables["anyshape"].items() if row.get("limits"))
    return [*lines, *(f"anyshape: verified, but {text}: {name}" for name, text in narrow if text)]


def excluded(name: str, limits: Sequence[str]) -> str:
    """A judged size, at which PyTorch runs, that a limit says the model cannot do."""
    from coverage_models import load
    from coverage_models.entry import dims_in

    rounds = load(name.partition(".")[0])[name].rounds
    return next(
        (f"`{limit}` excludes {sizes}" for limit in limits for sizes in rounds
         if set(dims_in([limit])) <= set(sizes) and not _holds(limit, sizes)), "",
    )  # fmt: skip


def _holds(limit: str, sizes: Mapping[str, int]) -> bool:
    try:
        return bool(eval(limit, {"__builtins__": {}, "min": min, "max": max}, dict(sizes)))
    except (SyntaxError, NameError, TypeError):
        return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="?", help="a folder of the sweep's; else what is kept is shown")
    parser.add_argument("--keep", action="store_true", help="keep them in coverage.json, of which the page is made")
    given = parser.parse_args()
    kept: Kept = read("coverage")
    tables = tables_of(read_records(given.results).values()) if given.results else {**kept.tables}
    print(*shortfalls(tables), totals(tables), sep="\n")
    if given.results and given.keep:
        keep(place_of("coverage"), tables, this_run((*PACKAGES, "onnx", "transformers", "timm")))


if __name__ == "__main__":
    main()
