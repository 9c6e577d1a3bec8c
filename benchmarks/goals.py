"""What is aimed at: each goal with its threshold, and which of the kept figures meet it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from figures import Kept, Rows, read

Figures = Mapping[str, float]
"""A figure by the name of the row that it is of."""


@dataclass(frozen=True)
class Goal:
    """A figure of every row is at most so large."""

    benchmark: str
    """Whose file holds the figures."""
    text: str
    most: float
    figures: Callable[[Kept], Figures]

    @property
    def found(self) -> Figures:
        return self.figures(read(self.benchmark))

    def missed(self, found: Figures) -> Figures:
        return {name: figure for name, figure in found.items() if figure > self.most}

    def verdict(self, found: Figures) -> str:
        """`met`, or by which rows it is missed, the worst first."""
        if not found:
            return "not measured"
        missed = sorted(self.missed(found).items(), key=lambda row: -row[1])
        if not missed:
            return "met"
        told = ", ".join(f"{name} {self._shown(figure)}" for name, figure in missed[:MOST_NAMED])
        further = f" and {len(missed) - MOST_NAMED} more" if len(missed) > MOST_NAMED else ""
        return f"missed by {len(missed)} of {len(found)}: {told}{further}"

    def _shown(self, figure: float) -> str:
        """A third digit where two of them would hide what is missed."""
        return f"{figure:.2f}" if f"{figure:.2f}" != f"{self.most:.2f}" else f"{figure:.3f}"


MOST_NAMED = 6


def span(found: Figures) -> str:
    """The smallest and the largest figure."""
    least, most = min(found.values(), default=0.0), max(found.values(), default=0.0)
    return "" if not found else f"{least:.2f}" if f"{least:.2f}" == f"{most:.2f}" else f"{least:.2f} to {most:.2f}"


# ---- the time of an export


def _of_exports(
    ratio: Callable[[Mapping[str, float]], float], *, taken_apart: bool | None = None
) -> Callable[[Kept], Figures]:
    """A ratio of each subject but the trivial one; of those alone that torch has to take apart, or that it has not."""

    def figures(kept: Kept) -> Figures:
        rows = {name: row for name, row in kept.table("exports").items() if name != "linear"}
        return {
            name: ratio(row) for name, row in rows.items()
            if taken_apart is None or bool(row["forced_by"]) == taken_apart
        }  # fmt: skip

    return figures


def _convert(row: Mapping[str, float]) -> float:
    return row["whole"] - row["check"]


def _above_trace(kept: Kept) -> Figures:
    return {name: _convert(row) - row["trace"] for name, row in kept.table("exports").items() if name == "linear"}


def _growth(kept: Kept) -> Figures:
    rows = kept.table("exports")
    if not {"encoder 12", "encoder 48"} <= set(rows):
        return {}
    return {"48 layers": _convert(rows["encoder 48"]) / _convert(rows["encoder 12"])}


def _cold(name: str, peer: str = "") -> Callable[[Kept], Figures]:
    def figures(kept: Kept) -> Figures:
        rows = kept.table("new processes")
        if name not in rows:
            return {}
        return {name: rows[name]["seconds"] / (rows[peer]["seconds"] if peer else 1.0)}

    return figures


# ---- a whole process


def _command_line(kept: Kept) -> Figures:
    rows = kept.table("programs")
    if not {"command line", "torch"} <= set(rows):
        return {}
    return {"command line": rows["command line"]["seconds"] / rows["torch"]["seconds"]}


# ---- real models

SUM_BEFORE = 3760.0
"""CPU seconds of all entries together on 17 November 2026."""


def _of_torchs(part: str) -> Callable[[Kept], Figures]:
    def figures(kept: Kept) -> Figures:
        ours, theirs = kept.table("anyshape"), kept.table("dynamo")
        torchs = {name: row["seconds"] for name, row in theirs.items() if row.get("seconds")}
        right = {name: row for name, row in ours.items() if row["outcome"] == "verified" and row.get(part)}
        ratios = [row[part] / torchs[name] for name, row in right.items() if name in torchs]
        return {"median": median(ratios)} if ratios else {}

    return figures


def _patience(kept: Kept) -> Figures:
    theirs = kept.table("dynamo")
    return {
        name: row["seconds"] / max(60.0, 3 * theirs.get(name, {}).get("seconds", 0.0))
        for name, row in kept.table("anyshape").items()
    }


def _sum_of_all(kept: Kept) -> Figures:
    rows = kept.table("anyshape")
    return {"all": sum(row["seconds"] for row in rows.values()) / SUM_BEFORE} if rows else {}


# ---- the speed of a file


def _of_files(to: str, *, short: bool | None = None, models: tuple[str, ...] = ("",)) -> Callable[[Kept], Figures]:
    """Our file in units of another one at each size; of short calls alone, or of the others."""

    def figures(kept: Kept) -> Figures:
        return {
            f"{name} ({threads})": _in_units_of(to, row)
            for threads in ("1 thread", "2 threads") for name, row in kept.table(threads).items()
            if name.startswith(models) and (short is None or (row["static"] < SHORT) == short)
        }  # fmt: skip

    return figures


def _in_units_of(to: str, row: Mapping[str, Any]) -> float:
    return float(row["best"] if to == "best" else row["ratios"]["anyshape"] / row["ratios"].get(to, 1.0))


SHORT = 1.0
"""Milliseconds below which a call is mostly overhead."""


def _nodes(kept: Kept) -> Figures:
    return {
        model: row["anyshape"] / min(count for name, count in row.items() if name not in ("run", "static", "anyshape"))
        for model, row in kept.table("nodes").items()
    }


# ---- memory


def _of_weights(part: str) -> Callable[[Kept], Figures]:
    def figures(kept: Kept) -> Figures:
        rows = kept.table("memory")
        return {f"{row['subject']}, {row['gigabytes']:g} GB": row[part]
                for row in rows.values() if row["tool"] == "anyshape" and row.get(part) is not None}  # fmt: skip

    return figures


# ---- all of them

GOALS = (
    Goal("export_time", "conversion in units of the trace", 2.0,
         _of_exports(lambda row: _convert(row) / row["trace"], taken_apart=False)),
    Goal("export_time", "the same where a program must be taken apart", 3.5,
         _of_exports(lambda row: _convert(row) / row["trace"], taken_apart=True)),
    Goal("export_time", "conversion in units of torch's time", 1 / 3,
         _of_exports(lambda row: _convert(row) / row["torch"])),
    Goal("export_time", "conversion and check in units of torch's time, which checks nothing", 0.6,
         _of_exports(lambda row: row["whole"] / row["torch"])),
    Goal("export_time", "seconds of a trivial model above its trace", 0.05, _above_trace),
    Goal("export_time", "48 layers in units of the time of 12", 4.5, _growth),
    Goal("export_time", "the first export of a process in Python in units of torch's", 0.8, _cold("anyshape", "torch")),
    Goal("export_time", "seconds of `import anyshape`", 0.3, _cold("import")),
    Goal("export_time", "seconds of `anyshape --help`, without torch", 0.3, _cold("--help")),
    Goal("first_export", "a first export at the command line in units of a script with torch's", 0.5, _command_line),
    Goal("coverage", "conversion of 503 models in units of torch's time, the median", 0.5, _of_torchs("converting")),
    Goal("coverage", "conversion and check of each of them in units of a minute, or of three times torch's time where "
         "that is more", 1.0, _patience),
    Goal("coverage", f"all of them together in units of the {SUM_BEFORE:,.0f} s that they took", 0.5, _sum_of_all),
    Goal("inference", "a file in units of torch's static file, calls above 1 ms", 1.05,
         _of_files("static", short=False)),
    Goal("inference", "the same below 1 ms", 1.10, _of_files("static", short=True)),
    Goal("inference", "a file in units of the fastest dynamic file of the others", 1.03, _of_files("best")),
    Goal("inference", "BERT and llama in units of torch's dynamic file", 0.90,
         _of_files("dynamo", models=("bert", "llama"))),
    Goal("inference", "nodes in units of the fewest of all dynamic files", 1.0, _nodes),
    Goal("memory", "converting, beyond the model, in units of its weights", 0.05, _of_weights("convert")),
    Goal("memory", "checking, likewise", 0.10, _of_weights("check")),
    Goal("memory", "the one run with ONNX Runtime's default options, which pack weights, likewise", 3.0,
         _of_weights("default")),
    Goal("memory", "bytes written, likewise", 1.05, _of_weights("written")),
    Goal("memory", "the size of the file, likewise", 1.05, _of_weights("file")),
)  # fmt: skip


def report(benchmark: str, tables: Mapping[str, Rows]) -> str:
    """A line for each goal of a benchmark that can be said of these rows."""
    told = {goal: goal.figures(Kept({}, tables)) for goal in GOALS if goal.benchmark == benchmark}
    return "\n".join(
        f"{span(found):<14} at most {goal.most:.2f}  {goal.text}: {goal.verdict(found)}"
        for goal, found in told.items()
        if found
    )
