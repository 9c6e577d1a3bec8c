"""What the default form of a file costs: opset 20 against the newest operators that `target="onnxruntime"` writes.

Both files of each model run in random order on one thread, each in its own process and after an untimed call; the 20 %
quantile of the thread's CPU time counts. A figure is the time of the default form in units of the other's; `again` is
the other's own file once more, which shows the noise.
Run: python benchmarks/forms.py [--only REGEX] [--runs N] [--json [FILE]]
"""

from __future__ import annotations

import argparse
import contextlib
import random
import re
import tempfile
from pathlib import Path
from typing import Any

import onnx
import torch

import anyshape
from anyshape.runtime.opening import Opening
from anyshape.runtime.timed_session import TimedFile, timed_file
from anyshape.runtime.timing import clock_for
from figures import add_json_option, keep
from inference import milliseconds_of
from inference_files import describe, inputs_of, quiet
from inference_models import Subject, subjects

FORMS = {"default": None, "newest": "onnxruntime"}


def timed(subject: Subject, runs: int, folder: Path) -> dict[str, dict[str, Any]]:
    """A row for each size, printed as it is measured."""
    torch.manual_seed(0)
    model, paths, rows = subject.build(), {}, {}
    for name, target in FORMS.items():
        paths[name] = folder / f"{subject.name}_{name}.onnx"
        with quiet():
            anyshape.export(
                model, inputs_of(subject, subject.example), paths[name],
                dims=subject.dims, sizes=subject.ranges, target=target, quick=True,
            )  # fmt: skip
    nodes = {name: len(onnx.load(path, load_external_data=False).graph.node) for name, path in paths.items()}
    for sizes in subject.timed:
        feeds = {name: tensor.numpy() for name, tensor in zip(subject.dims, inputs_of(subject, sizes), strict=True)}
        with contextlib.ExitStack() as stack:
            twice = {**paths, "again": paths["newest"]}
            opened = {name: stack.enter_context(opened_file(path)) for name, path in twice.items()}
            clock = clock_for(1)
            found = milliseconds_of({name: file.sample(feeds, clock) for name, file in opened.items()}, runs)
        default, again = (found[name] / found["newest"] for name in ("default", "again"))
        counts = f"{nodes['default']} / {nodes['newest']}"
        row = (f"{subject.name} {describe(sizes)}", f"{found['newest']:.3f}", f"{default:.2f}", f"{again:.2f}", counts)
        print(f"| {' | '.join(row)} |", flush=True)
        shares = {"newest": round(found["newest"], 4), "default": round(default, 4), "again": round(again, 4)}
        rows[row[0]] = {**shares, "nodes": [nodes["default"], nodes["newest"]]}
    return rows


def opened_file(path: Path) -> contextlib.AbstractContextManager[TimedFile]:
    plain = Opening("", threads=1, settings={"inter_op_num_threads": 1})
    return timed_file(path, onnx.load(path, load_external_data=False), plain, trusted=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="encoder|bert|llama|vit", help="models whose name this expression matches")
    parser.add_argument(
        "--runs", type=int, default=40, help="rounds for each size, three times as many for short calls"
    )
    add_json_option(parser, "forms")
    given = parser.parse_args()
    random.seed(0)
    torch.set_num_threads(1)
    print("| model, sizes | newest ms | default | again | nodes: default / newest |\n|---|---|---|---|---|")
    rows: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        for subject in (one for one in subjects() if re.search(given.only, one.name)):
            rows |= timed(subject, given.runs, Path(folder))
    if given.json:
        keep(given.json, {"forms": rows})


if __name__ == "__main__":
    main()
