"""What `bench` returns: how long files and a model take at each size, how that compares, and what it does not tell."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anyshape.errors import DeclarationError
from anyshape.onnxfile.destination import check_destination, replace_text
from anyshape.results.markup import ShownInNotebooks
from anyshape.sizes.notation import Sizes


@dataclass(frozen=True)
class TimedPoint:
    """One subject at one size, in milliseconds: the median, and between which eight of ten calls lie."""

    median: float
    low: float
    high: float
    memory: int | None = None
    """Bytes by which a fresh process grew over its first run; None where that is not known."""


@dataclass(frozen=True)
class Series:
    """A file, or a way to run the model, at every size; None where it was not timed."""

    name: str
    points: tuple[TimedPoint | None, ...]


@dataclass(frozen=True)
class TimeRatio:
    """How one subject compares with the first file at one size: the median of rounds, and where that lies with 95 %."""

    name: str
    size: int
    """Its place among the sizes."""
    median: float
    low: float
    high: float
    """Infinite where rounds were too few to tell."""
    is_noise: bool
    """Whether it may be 1, as far as this machine can tell."""


@dataclass(frozen=True, repr=False)
class Times(ShownInNotebooks):
    """Latency and memory over sizes; `print` it."""

    machine: str
    runtime: str
    threads: int
    rounds: int
    """The fewest that any size had."""
    clock: str
    """`thread`: the time of the one thread itself; `wall`: the wall clock's."""
    sizes: tuple[Sizes, ...]
    series: tuple[Series, ...]
    """The first is the file that the others are compared with."""
    ratios: tuple[TimeRatio, ...] = ()
    nodes: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    """Of the first file at the largest size: node -> its operator and its share of the time, the largest first."""
    profiled_at: int = 0
    """The place of that size."""
    notes: tuple[str, ...] = ()

    @property
    def headline(self) -> str:
        """The first line, which stands alone."""
        from anyshape.results.times_text import headline_of

        return headline_of(self)

    def __str__(self) -> str:
        from anyshape.results.times_text import times_text

        return times_text(self)

    def svg(self) -> str:
        """The times over the sizes as a picture that stands alone."""
        from anyshape.results.times_chart import chart_of

        return chart_of(self)

    def _repr_html_(self) -> str:
        from anyshape.results.markup import box, table
        from anyshape.results.times_text import facts_of

        return box(table(self.headline, facts_of(self)), self.svg())

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values for JSON."""
        return {
            "machine": self.machine,
            "runtime": self.runtime,
            "threads": self.threads,
            "rounds": self.rounds,
            "clock": self.clock,
            "sizes": [dict(sizes) for sizes in self.sizes],
            "series": [
                {"name": one.name, "points": [None if point is None else _plain_point(point) for point in one.points]}
                for one in self.series
            ],
            "ratios": [
                {
                    "name": one.name, "size": one.size, "median": round(one.median, 4), "low": round(one.low, 4),
                    "high": round(one.high, 4) if math.isfinite(one.high) else None, "within_noise": one.is_noise,
                }
                for one in self.ratios
            ],
            "nodes": {name: round(share, 6) for name, (_, share) in self.nodes.items()} or None,
            "operators": {name: operator for name, (operator, _) in self.nodes.items()} or None,
            "profiled_at": self.profiled_at if self.nodes else None,
            "notes": list(self.notes),
        }  # fmt: skip

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=2)

    def save(self, destination: str | os.PathLike[str]) -> None:
        """Write a picture (`.svg`, or `.png` where resvg-py is installed) or the figures (`.json`)."""
        path = check_picture(destination)
        replace_text(path, _CONTENTS[path.suffix.lower()](self))


def _plain_point(point: TimedPoint) -> dict[str, Any]:
    times = {name: round(getattr(point, name), 6) for name in ("median", "low", "high")}
    return {**times, "memory": point.memory}


def _png(times: Times) -> bytes:
    from anyshape.results.times_chart import pixels_of

    return pixels_of(times.svg())


_CONTENTS: Mapping[str, Callable[[Times], str | bytes]] = {
    ".svg": Times.svg,
    ".png": _png,
    ".json": lambda times: times.to_json() + "\n",
}


def check_picture(destination: str | os.PathLike[str]) -> Path:
    """The path of a picture or of figures to write, or one sentence about why not."""
    suffix = Path(destination).suffix.lower()
    if suffix not in _CONTENTS:
        raise DeclarationError(f"`{destination}` is neither .svg or .png, for a picture, nor .json, for the figures")
    if suffix == ".png":
        from anyshape.results.times_chart import EMPTY_PICTURE, pixels_of

        pixels_of(EMPTY_PICTURE)  # before anything is timed for it
    path = Path(destination)
    checked = path if path.is_file() else check_destination(path)  # what is there is a picture, and no model
    assert checked is not None
    return checked
