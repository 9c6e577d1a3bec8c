"""What became of each operator, kept in operators.json, and the tables of docs/operators.md that are made of it.

Run: python benchmarks/operator_tables.py RESULTS [RESULTS ...] [--only REGEX] [--keep]
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from anyshape.fleet.result_lines import TaskRecord, read_records
from figures import this_run

KEPT = Path(__file__).with_name("operators.json")
EXPORTERS_SHOWN = ("anyshape", "anyshape, dims found", "torch", "TorchScript")
OURS = EXPORTERS_SHOWN[0]
ORDER = ("right", "values", "refused", "wrong", "died")
LONGEST_REASON = 150

Record = dict[str, Any]
Table = dict[str, dict[str, Any]]


# ---- a summary: for each operator and exporter its worst outcome


def result_of(record: TaskRecord) -> Record:
    """A line of the sweep: right, off with some contents alone, refused, wrong, or how its process ended."""
    said = record.details.get("judged", {})
    # what anyshape cannot make sense of it has refused; whether torch could, nobody has asked
    defect = "refused" if record.column in EXPORTERS_SHOWN[:2] else "no sample"
    outcome = {"refused": "refused", "defect": defect, "wrong": "refused" if "opens" in said else "wrong"}
    found = "values" if "contents" in said else "right"
    known = found if record.is_good else outcome.get(record.outcome, "died")
    kept: Record = {"key": record.name, "exporter": record.column, "outcome": known}
    kept |= {"contents": said["contents"]} if "contents" in said else {}
    return {**kept, "reason": record.cause} if record.cause else kept


def operator_of(record: Record) -> str:
    return str(record["key"].rsplit(" ", 2)[0])


def judged(records: Iterable[Record]) -> list[Record]:
    """Without samples that cannot be run."""
    every = sorted(records, key=lambda one: (one["key"], one["exporter"]))
    return [one for one in every if one["outcome"] in ORDER]


def summary(records: Iterable[Record]) -> Table:
    """An operator is as good as the worst of its samples."""
    table: Table = {}
    for record in judged(records):
        cells, dtype = table.setdefault(operator_of(record), {}), record["key"].rsplit(" ", 2)[1]
        cell = cells.setdefault(record["exporter"], {"outcome": "right", "samples": 0})
        cell["samples"] += 1
        for name, text in record.get("contents", {}).items():
            cell.setdefault("contents", {}).setdefault(name, f"{dtype}: {text}")
        if ORDER.index(record["outcome"]) > ORDER.index(cell["outcome"]):
            cell["outcome"] = record["outcome"]
            if "reason" in record:
                cell["reason"] = f"{dtype}: {in_short(record['reason'])}"
    return table


def counted(table: Table, exporter: str) -> dict[str, int]:
    outcomes = [cells[exporter]["outcome"] for cells in table.values() if exporter in cells]
    return {"operators": len(outcomes), **{outcome: outcomes.count(outcome) for outcome in ORDER}}


_WORDS: tuple[tuple[str, str], ...] = (
    (r"No ONNX function found for (\w+)\.(\w+)|`(\w+)::(\w+)[^`]*` has no ONNX translation", "no ONNX translation"),
    (r"Type 'tensor\((\w+)\)'|Could not find an implementation", "ONNX Runtime has no such kernel"),
    (r"[Ss]parse", "sparse tensors"),
    (r"dim0_offset of 0|zero effective input extent|Unexpected mode of 3|Invalid Target", "sizes of zero"),
)
"""What a reason says -> the words for it."""


def in_short(reason: str) -> str:
    """Why, without the places of temporary files."""
    for pattern, words in _WORDS:
        if re.search(pattern, reason):
            return words
    message, _, first = reason.partition("; ")
    told = first if message.startswith("not-converted") and first else message
    told = re.sub(r"Load model from \S+ failed:", "", told).strip()
    return told if len(told) <= LONGEST_REASON else told[: LONGEST_REASON - 3] + "..."


# ---- what is kept


def keep(records: Iterable[Record]) -> None:
    """All results in short, and the counts on those samples that all exporters had."""
    every = judged(records)
    by_key: dict[str, list[Record]] = {}
    for record in every:
        by_key.setdefault(record["key"], []).append(record)
    shared = [group for group in by_key.values() if {one["exporter"] for one in group} >= set(EXPORTERS_SHOWN)]
    on_shared = summary(record for group in shared for record in group)
    kept = {
        **this_run(),
        "samples": {name: sum(one["exporter"] == name for one in every) for name in EXPORTERS_SHOWN},
        "same samples": len(shared),
        "on the same samples": {name: counted(on_shared, name) for name in EXPORTERS_SHOWN},
        "counts": {name: counted(summary(every), name) for name in EXPORTERS_SHOWN},
        "operators": {name: _kept_cells(cells) for name, cells in summary(every).items()},
    }
    KEPT.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _kept_cells(cells: dict[str, Any]) -> dict[str, Any]:
    """Others' in a word; ours with what is off, and why it was refused."""
    return {name: cell if name in EXPORTERS_SHOWN[:2] else cell["outcome"] for name, cell in cells.items()}


# ---- the tables of docs/operators.md


def _rows(head: str, rows: Iterable[Iterable[str]]) -> str:
    return "\n".join([head, "|---" * (head.count("|") - 1) + "|", *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


_HEAD = "| exporter | samples | operators | right | right but for named values | refused | wrong | dead process |"


def counts() -> str:
    """Beside torch's exporters on the same samples, and of all samples that were run."""
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    many = kept["same samples"]
    same = [(name, str(many), *map(str, found.values())) for name, found in _in_order(kept["on the same samples"])]
    every = [(name, str(kept["samples"][name]), *map(str, found.values())) for name, found in _in_order(kept["counts"])]
    versions = ", ".join(f"{name} {number}" for name, number in sorted(kept["versions"].items()))
    commit = f" (commit {kept['commit']})" if "commit" in kept else ""
    said = f"Measured on {kept['date']}{commit} with {versions}."
    shared = f"On the {many} samples that all of them were given:\n\n{_rows(_HEAD, same)}"
    return f"{shared}\nOn all that were run:\n\n{_rows(_HEAD, every)}\n{said}\n"


def _in_order(found: dict[str, dict[str, int]]) -> list[tuple[str, dict[str, int]]]:
    columns = ("operators", *ORDER)
    return [(name, {column: found[name][column] for column in columns}) for name in EXPORTERS_SHOWN]


def each_operator() -> str:
    """By outcome, those that are right in one paragraph."""
    operators = json.loads(KEPT.read_text(encoding="utf-8"))["operators"]
    ours = {name: _worst(cells) for name, cells in operators.items() if OURS in cells}
    right = ", ".join(f"`{name}`" for name, cell in ours.items() if cell["outcome"] == "right")
    values = [
        (f"`{name}`", ", ".join(cell["contents"]), _escaped(next(iter(cell["contents"].values()))))
        for name, cell in ours.items()
        if cell["outcome"] == "values"
    ]
    return (
        f"### Right\n\n{right}\n\n### Right but for named values\n\n"
        + _rows("| operator | off with | for example: ours for PyTorch's |", values)
        + "\n### Refused\n\n"
        + _rows("| why | operators |", _by_reason(ours))
        + _others(ours)
    )


def _worst(cells: dict[str, Any]) -> dict[str, Any]:
    """Static, or with dims found."""
    found: list[dict[str, Any]] = [cells[name] for name in EXPORTERS_SHOWN[:2] if name in cells]
    return max(found, key=lambda cell: ORDER.index(cell["outcome"]))


def _by_reason(ours: Table) -> list[tuple[str, str]]:
    reasons: dict[str, list[str]] = {}
    for name, cell in ours.items():
        if cell["outcome"] == "refused":
            dtype, _, why = cell.get("reason", "").partition(": ")
            reasons.setdefault(why, []).append(f"`{name}`" + ("" if dtype == "float32" else f" ({dtype})"))
    return [(_escaped(why), ", ".join(names)) for why, names in sorted(reasons.items(), key=lambda row: -len(row[1]))]


def _others(ours: Table) -> str:
    bad = [(f"`{name}`", cell["outcome"], _escaped(cell.get("reason", "") or str(cell.get("contents", ""))))
           for name, cell in ours.items() if cell["outcome"] in ("wrong", "died")]  # fmt: skip
    return "\n### Wrong, or a dead process\n\n" + (_rows("| operator | | what |", bad) if bad else "None.\n")


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="+", help="folders of sweeps")
    parser.add_argument("--only", default="", help="operators whose name this expression matches")
    parser.add_argument("--keep", action="store_true", help="keep the summary of which docs/operators.md is made")
    given = parser.parse_args()
    found = [result_of(record) for place in given.results for record in read_records(place).values()]
    chosen = {name: cells for name, cells in summary(found).items() if re.search(given.only, name)}
    for name, cells in chosen.items():
        for exporter, cell in cells.items():
            if cell["outcome"] != "right":
                print(f"{name} [{exporter}] {cell['outcome']} {cell.get('reason', '')} {cell.get('contents', '')}")
    for exporter in EXPORTERS_SHOWN:
        print(f"{exporter}: {counted(chosen, exporter)}")
    if given.keep:
        keep(found)


if __name__ == "__main__":
    main()
