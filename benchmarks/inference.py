"""Inference time in ONNX Runtime: anyshape's dynamic files against those of torch's exporters, plain and optimised.

Each model is timed at three sizes, on one thread and two, by the engine of `anyshape bench`: in every round all files
run in random order, each in its own process and after an untimed call. The 20 % quantile counts. A figure is the ratio
to torch's static file for that very size: below 1 is faster. What gives other numbers than PyTorch is not timed.
Run: python benchmarks/inference.py [--only REGEX] [--runs N] [--threads 1,2] [--compile] [--folder DIR] [--json [FILE]]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import platform
import random
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from torch import nn

from anyshape.errors import AnyshapeError
from anyshape.runtime.opening import Opening
from anyshape.runtime.session import Feeds
from anyshape.runtime.timed_session import TimedFile, timed_file
from anyshape.runtime.timing import Sample, clock_for, clocked, measure, quantile
from figures import PACKAGES, add_json_option, keep, this_run
from goals import SHORT, report
from inference_files import OURS, PEERS, STATIC, Files, count_nodes, describe, inputs_of, make_files
from inference_models import Sizes, Subject, subjects

FIXED = f"{OURS}+sizes"
"""Our file in a session for one size alone."""
ADVISED = f"{FIXED}+advice"
"""The same with the session options that the file's metadata advise."""
REFERENCE = ("eager", "compile")
QUANTILE = 0.2

Call = Callable[[], Any]


@dataclass(frozen=True)
class Row:
    """One model at one size on some threads: milliseconds by name."""

    model: str
    sizes: Sizes
    threads: int
    milliseconds: Mapping[str, float]

    def ratio(self, name: str, to: str) -> float:
        return self.milliseconds[name] / self.milliseconds[to]


# ---- what is run


def advised(path: Path) -> list[str]:
    rows = {entry.key: entry.value for entry in onnx.load(path, load_external_data=False).metadata_props}
    return list(json.loads(rows.get("anyshape.session", "{}")).get("disabled_optimizers", []))


@contextlib.contextmanager
def opened_files(files: Mapping[str, Path], sizes: Sizes, threads: int) -> Iterator[dict[str, TimedFile]]:
    """Each file in a process of its own, ours also for one size alone, and as its metadata advise."""
    plain = Opening("", threads=threads, settings={"inter_op_num_threads": 1})
    wanted = {name: (path, plain) for name, path in files.items()}
    if OURS in files:
        wanted[FIXED] = (files[OURS], replace(plain, fixed=sizes))
        if disabled := advised(files[OURS]):
            wanted[ADVISED] = (files[OURS], replace(plain, fixed=sizes, disabled_optimizers=disabled))
    opened: dict[str, TimedFile] = {}
    with contextlib.ExitStack() as stack:
        for name, (path, opening) in wanted.items():
            proto = onnx.load(path, load_external_data=False)
            try:
                opened[name] = stack.enter_context(timed_file(path, proto, opening, trusted=True))
            except AnyshapeError as error:
                print(f"  {name}: not loaded ({str(error)[:100]})")
        yield opened


def torch_calls(model: nn.Module, compiled: nn.Module | None, tensors: tuple[torch.Tensor, ...]) -> dict[str, Call]:
    found = {"eager": lambda: model(*tensors)}
    return found if compiled is None else {**found, "compile": lambda: compiled(*tensors)}


def right(file: TimedFile, feeds: Feeds, expected: Sequence[np.ndarray]) -> bool:
    try:
        found = file.results(feeds)
    except AnyshapeError:
        return False
    return all(
        a.shape == b.shape and np.allclose(a, b, atol=1e-3 * np.abs(b).max(initial=1.0))
        for a, b in zip(found, expected, strict=True)
    )


# ---- how it is timed


def milliseconds_of(samples: Mapping[str, Sample], runs: int) -> dict[str, float]:
    """The quantile that counts; of calls that are over so soon that many rounds cost little, three times as many."""
    first = samples.get(OURS) or next(iter(samples.values()))
    rounds = 3 * runs if first() < 3 * SHORT / 1000 else runs
    seconds = measure(samples, rounds, random.Random(0))
    return {name: 1000 * quantile(row, QUANTILE) for name, row in seconds.items()}


def timed(subject: Subject, model: nn.Module, compiled: Any, files: Files, threads: int, runs: int) -> list[Row]:
    rows, clock = [], clock_for(threads)
    for index, sizes in enumerate(subject.timed):
        tensors = inputs_of(subject, sizes)
        feeds = {name: tensor.numpy() for name, tensor in zip(subject.dims, tensors, strict=True)}
        found = model(*tensors)
        expected = [tensor.numpy() for tensor in (found if isinstance(found, tuple) else (found,))]
        with opened_files(files.at(index), sizes, threads) as opened:
            samples: dict[str, Sample] = {}
            for name, file in opened.items():
                if right(file, feeds, expected):
                    samples[name] = file.sample(feeds, clock)
                else:
                    print(f"  {name}: fails or is wrong at {describe(sizes)}")
            samples |= {name: clocked(call, clock) for name, call in torch_calls(model, compiled, tensors).items()}
            rows.append(Row(subject.name, sizes, threads, milliseconds_of(samples, runs)))
    return rows


# ---- what is printed

COLUMNS = (OURS, FIXED, ADVISED, *PEERS, "script static", *REFERENCE)


def print_times(rows: Sequence[Row]) -> None:
    print("\nratio to the static file (left: its milliseconds)")
    print(
        f"{'model':<12} {'sizes':>10} {'threads':>7} {STATIC:>8} "
        + " ".join(f"{name:>{width(name)}}" for name in COLUMNS)
    )
    for row in rows:
        base = row.milliseconds.get(STATIC)
        start = f"{row.model:<12} {describe(row.sizes):>10} {row.threads:>7} {base or float('nan'):>8.3f} "
        cells = (row.milliseconds[n] / base if base and n in row.milliseconds else None for n in COLUMNS)
        print(
            start
            + " ".join(
                f"{'-' if c is None else format(c, '.2f'):>{width(n)}}" for n, c in zip(COLUMNS, cells, strict=True)
            )
        )


def width(name: str) -> int:
    return max(len(name), 6)


def print_nodes(counts: Mapping[str, Mapping[str, int]]) -> None:
    names = (STATIC, OURS, *PEERS)
    print("\nnodes in the file")
    print(f"{'model':<12} " + " ".join(f"{name:>{width(name)}}" for name in names))
    for model, row in counts.items():
        print(f"{model:<12} " + " ".join(f"{row.get(name, '-'):>{width(name)}}" for name in names))


def tables_of(rows: Sequence[Row], counts: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, dict[str, Any]]]:
    """By threads, model and sizes: the static file's time, and all others in units of it."""
    tables: dict[str, dict[str, dict[str, Any]]] = {"nodes": {model: dict(row) for model, row in counts.items()}}
    for row in rows:
        peers = [row.milliseconds[name] for name in PEERS if name in row.milliseconds]
        if STATIC not in row.milliseconds or OURS not in row.milliseconds or not peers:
            continue
        ratios = {name: round(row.ratio(name, STATIC), 4) for name in row.milliseconds if name != STATIC}
        table = tables.setdefault(f"{row.threads} thread{'s' if row.threads > 1 else ''}", {})
        table[f"{row.model} {describe(row.sizes)}"] = {
            "static": round(row.milliseconds[STATIC], 4), "ratios": ratios,
            "best": round(row.milliseconds[OURS] / min(peers), 4),
        }  # fmt: skip
    return tables


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="models whose name this expression matches")
    parser.add_argument("--runs", type=int, default=40, help="rounds for each size")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--compile", action="store_true", help="torch.compile, too: slow to start")
    parser.add_argument("--folder", type=Path, help="where to keep the files; what is there is not made anew")
    add_json_option(parser, "inference")
    given = parser.parse_args()
    versions = f"torch {torch.__version__}, onnxruntime {onnxruntime.__version__}, Python {platform.python_version()}"
    print(f"20 % quantiles of {given.runs} rounds; {versions}")
    rows, counts = [], {}
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        for subject in (one for one in subjects() if re.search(given.only, one.name)):
            print(subject.name, flush=True)
            torch.manual_seed(0)
            model = subject.build()
            files = make_files(subject, model, given.folder or Path(folder))
            for name, reason in files.missing.items():
                print(f"  {name}: no file ({reason})")
            counts[subject.name] = {name: count_nodes(path) for name, path in files.at(0).items()}
            compiled = torch.compile(model, dynamic=True) if given.compile else None
            for threads in map(int, given.threads.split(",")):
                torch.set_num_threads(threads)
                rows += timed(subject, model, compiled, files, threads, given.runs)
    print_times(rows)
    print_nodes(counts)
    tables = tables_of(rows, counts)
    print(f"\n{report('inference', tables)}")
    if given.json:
        keep(given.json, tables, this_run((*PACKAGES, "transformers", "onnxslim")))


if __name__ == "__main__":
    main()
