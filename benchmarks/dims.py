"""One call and no declaration: how often are the dims that anyshape finds those that an expert declares?

Over the models of the coverage benchmark and the tests' own cases, each with its example call alone. The expert is the
declaration that stands beside the model. `exact`: the same axes follow the same dims; `extra`: these, and further axes
that the model lets vary; `general`: axes that the expert ties vary apart, as the model allows; `missed`: an axis that
the expert lets vary is static; `wrong`: dims that the expert keeps apart are one.

Run: python benchmarks/dims.py [--only REGEX] [--source cases|nn|hf|timm] [--all]
"""

from __future__ import annotations

import argparse
import collections
import re
import statistics
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from anyshape.declaration.calls import Signature, bind_call
from anyshape.declaration.spec import declare
from anyshape.declaration.targets import Target, resolve_target
from anyshape.model.proposal.one_call import propose
from anyshape.model.proposal.proposal import DimProposal
from coverage_models import load
from silence import silence

SOURCES = ("cases", "nn", "hf", "timm")
KINDS = ("exact", "extra", "general", "missed", "wrong", "failed")
Group = frozenset[tuple[str, int | None]]


@dataclass(frozen=True)
class Task:
    """One model, its example call, and what an expert says about it."""

    name: str
    target: Target
    signature: Signature
    dims: Mapping[str, Any]
    known: Mapping[str, int]


@dataclass(frozen=True)
class Row:
    """What was found for one model, and how long it took."""

    name: str
    kind: str
    proposal: DimProposal | None
    runs: int
    seconds: float


def tasks(source: str, pattern: str) -> Iterator[Task]:
    if source == "cases":
        yield from _cases(pattern)
        return
    for name, entry in load(source).items():
        if not re.search(pattern, name):
            continue
        with silence():
            target = resolve_target(entry.built())
            args, kwargs = entry.call(entry.example, seed=0)
        yield Task(name, target, bind_call(target, args, kwargs), entry.dims, entry.example)


def _cases(pattern: str) -> Iterator[Task]:
    sys.path.insert(0, str(Path(__file__).parent.parent))
    from tests import cases

    for name in cases.names():
        case = cases.load(name)
        if not case.exports or not re.search(pattern, f"cases.{name}"):
            continue
        target = resolve_target(case.model())
        args, kwargs = cases.example(case)
        known = {dim: size for dim, (size, _) in case.sizes.items()}
        yield Task(f"cases.{name}", target, bind_call(target, args, kwargs), case.dims, known)


# ---- how two declarations compare


def groups(signature: Signature, dims: Mapping[str, Any], known: Mapping[str, int] | None = None) -> set[Group]:
    """For each dim the places that it moves."""
    spec = declare(signature, dims, known=known)
    axes = [((leaf, axis), e) for leaf, row in spec.axes.items() for axis, e in enumerate(row) if e is not None]
    places = [*axes, *(((leaf, None), e) for leaf, e in spec.scalars.items())]
    return {frozenset(place for place, e in places if dim in e.names) for dim in spec.dims}


def compare(found: set[Group], wanted: set[Group]) -> str:
    if found == wanted:
        return "exact"
    if wanted < found:
        return "extra"
    if all(group == frozenset().union(*(part for part in found if part <= group)) for group in wanted):
        return "general"
    moving = frozenset().union(*found)
    return "missed" if any(not group <= moving for group in wanted) else "wrong"


def measured(task: Task) -> Row:
    calls = 0

    def counted(*_: Any) -> None:
        nonlocal calls
        calls += 1

    hook = task.target.module.register_forward_pre_hook(counted)
    start = time.perf_counter()
    try:
        with silence():
            proposal = propose(task.target, task.signature)
    finally:
        hook.remove()
    seconds = time.perf_counter() - start
    kind = compare(groups(task.signature, proposal.dims), groups(task.signature, task.dims, task.known))
    return Row(task.name, kind, proposal, calls, seconds)


# ---- tables


def show(console: Console, rows: list[Row], *, everything: bool) -> None:
    totals = Table("models", *KINDS, "median runs", "most", "median s", "most")
    sources = sorted({row.name.split(".")[0] for row in rows})
    for source in sources:
        own = [row for row in rows if row.name.startswith(f"{source}.")]
        counts = collections.Counter(row.kind for row in own)
        runs, seconds = [row.runs for row in own], [row.seconds for row in own]
        numbers = (statistics.median(runs), max(runs), round(statistics.median(seconds), 2), round(max(seconds), 1))
        totals.add_row(f"{source} ({len(own)})", *(str(counts[kind]) for kind in KINDS), *map(str, numbers))
    console.print(totals)
    for row in rows:
        if row.proposal is not None and (everything or row.kind != "exact"):
            dims = "; ".join(f"{leaf}: {' '.join(entries)}" for leaf, entries in row.proposal.dims.items())
            console.print(f"{row.kind:8} {row.name} ({row.runs} runs): {dims} {dict(row.proposal.sizes)}", markup=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="REGEX", default="", help="models whose name holds this")
    parser.add_argument("--source", action="append", choices=SOURCES, help="may be given several times")
    parser.add_argument("--all", action="store_true", help="show every proposal, not only those that differ")
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = (task for source in options.source or SOURCES for task in tasks(source, options.only))
    rows = []
    for task in found:
        rows.append(measured(task))
        print(f"{rows[-1].name}: {rows[-1].kind}", file=sys.stderr, flush=True)
    show(Console(soft_wrap=True, width=150), rows, everything=options.all)


if __name__ == "__main__":
    main()
