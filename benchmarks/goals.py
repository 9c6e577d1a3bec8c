"""What is aimed at: each goal with its threshold, and which of the kept figures meet it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from figures import Kept, read

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
        told = ", ".join(f"{name} {figure:.2f}" for name, figure in missed[:MOST_NAMED])
        further = f" and {len(missed) - MOST_NAMED} more" if len(missed) > MOST_NAMED else ""
        return f"missed by {len(missed)} of {len(found)}: {told}{further}"


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


EXPORT_TIME = (
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
)  # fmt: skip

GOALS = (*EXPORT_TIME,)
