"""Figures that benchmarks keep, and of which docs/performance.md is made: each row with the run that measured it.

A file beside a benchmark holds its `runs`, by the time at which they ended, and `tables` of rows, each with its run. A
run of some rows replaces these alone, so that a figure stands with the day, the versions and the code it is of.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import os
import platform
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
SOURCES = FOLDER.parent / "src" / "anyshape"
MOST_NAMED = 6
PACKAGES = ("torch", "onnxruntime", "onnxscript")

Row = Mapping[str, Any]
Rows = Mapping[str, Row]


def add_json_option(parser: argparse.ArgumentParser, benchmark: str) -> None:
    """`--json` keeps what is run in the file of which the documentation is made, `--json FILE` in another one."""
    _state()  # the code that is measured is the one that was there when it began
    place = place_of(benchmark)
    parser.add_argument(
        "--json",
        type=Path,
        nargs="?",
        const=place,
        metavar="FILE",
        help=f"keep what is run, in {place.name} by default",
    )


def place_of(benchmark: str) -> Path:
    return FOLDER / f"{benchmark}.json"


# ---- the run that measured a row


def code_of(sources: Path = SOURCES) -> str:
    """A hash of the package: equal where nothing that is measured has changed."""
    found = hashlib.sha256()
    for path in sorted(sources.rglob("*.py")):
        found.update(path.relative_to(sources).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()[:16]


@functools.cache
def _state() -> dict[str, str]:
    """The commit, for those who look for it (nothing without git), and the code."""
    command = ["git", "-C", str(FOLDER), "describe", "--always", "--dirty"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    return {"commit": ran.stdout.strip(), "code": code_of()}


def this_run(packages: Sequence[str] = PACKAGES) -> dict[str, Any]:
    versions = {"Python": platform.python_version()}
    for package in packages:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    load = round(os.getloadavg()[2], 1)
    return {
        "date": time.strftime("%Y-%m-%d", time.gmtime()), "versions": versions, **_state(),
        "machine": f"{os.cpu_count()} cores, a load of {load}",
    }  # fmt: skip


# ---- what is kept


@dataclass(frozen=True)
class Kept:
    """The figures of one benchmark."""

    runs: Mapping[str, Row]
    tables: Mapping[str, Rows]

    def table(self, name: str) -> Rows:
        return self.tables.get(name, {})

    def measured(self, name: str) -> str:
        """When, where and with what the rows of a table were measured."""
        rows, found = self.table(name), dict[str, list[str]]()
        for run in dict.fromkeys(row["run"] for row in rows.values()):
            mine = [key for key, row in rows.items() if row["run"] == run]
            named = f"{len(mine)} rows" if len(mine) > MOST_NAMED else ", ".join(mine)
            one = self.runs[run]
            versions = ", ".join(f"{package} {number}" for package, number in one["versions"].items())
            code = f"commit {one['commit']}" if one["commit"] else "entered by hand"
            whose = "" if len(mine) == len(rows) else f"{named} "
            found.setdefault(versions, []).append(f"{whose}on {one['date']} ({code}; {one['machine']})")
        return " ".join(f"Measured {'; '.join(told)}, with {versions}." for versions, told in found.items())

    def outdated(self, code: str) -> list[str]:
        """Rows whose code has changed since, or is not known."""
        return [
            f"{table}: {key}"
            for table, rows in self.tables.items()
            for key, row in rows.items()
            if self.runs[row["run"]]["code"] != code
        ]


def read(place: Path | str) -> Kept:
    path = place_of(place) if isinstance(place, str) else place
    if not path.exists():
        return Kept({}, {})
    found = json.loads(path.read_text(encoding="utf-8"))
    return Kept(found["runs"], found["tables"])


def keep(place: Path, tables: Mapping[str, Rows], run: Row | None = None) -> None:
    """These rows instead of those of the same names; runs of which no row is left go with their last one."""
    before, now = read(place), time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())
    named = dict(before.tables)
    for table, rows in tables.items():
        named[table] = {**named.get(table, {}), **{key: {"run": now, **row} for key, row in rows.items()}}
    used = {row["run"] for rows in named.values() for row in rows.values()}
    runs = {name: one for name, one in {**before.runs, now: run or this_run()}.items() if name in used}
    content = json.dumps({"runs": runs, "tables": named}, indent=1, ensure_ascii=False) + "\n"
    beside = place.with_suffix(f".{os.getpid()}.part")
    beside.write_text(content, encoding="utf-8")
    beside.replace(place)
