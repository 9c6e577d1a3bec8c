"""What the default form of a file costs: opset 20 against the newest operators that `target="onnxruntime"` writes.

Both files of each model run in random order on one thread, each after an untimed call; the 20 % quantile of the
thread's CPU time counts. A figure is the time of the default form in units of the other's; `again` is a second session
of the other's own file, which shows the noise.
Run: python benchmarks/forms.py [--only REGEX] [--runs N]
"""

from __future__ import annotations

import argparse
import random
import re
import tempfile
from pathlib import Path

import onnx
import torch

import anyshape
from inference import is_short, quantiles, session_call
from inference_files import describe, inputs_of, quiet
from inference_models import Subject, subjects

FORMS = {"default": None, "newest": "onnxruntime"}


def timed(subject: Subject, runs: int, folder: Path) -> None:
    torch.manual_seed(0)
    model, paths = subject.build(), {}
    for name, target in FORMS.items():
        paths[name] = folder / f"{subject.name}_{name}.onnx"
        with quiet():
            anyshape.export(
                model, inputs_of(subject, subject.example), paths[name],
                dims=subject.dims, sizes=subject.ranges, target=target, quick=True,
            )  # fmt: skip
    nodes = {name: len(onnx.load(path, load_external_data=False).graph.node) for name, path in paths.items()}
    for sizes in subject.timed:
        feeds = [tensor.numpy() for tensor in inputs_of(subject, sizes)]
        calls = {name: session_call(path, feeds, 1) for name, path in paths.items()}
        calls["again"] = session_call(paths["newest"], feeds, 1)
        found = quantiles(calls, 3 * runs if is_short(calls["newest"]) else runs, 1)
        default, again = (found[name] / found["newest"] for name in ("default", "again"))
        counts = f"{nodes['default']} / {nodes['newest']}"
        row = (f"{subject.name} {describe(sizes)}", f"{found['newest']:.3f}", f"{default:.2f}", f"{again:.2f}", counts)
        print(f"| {' | '.join(row)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="encoder|bert|llama|vit", help="models whose name this expression matches")
    parser.add_argument(
        "--runs", type=int, default=40, help="rounds for each size, three times as many for short calls"
    )
    given = parser.parse_args()
    random.seed(0)
    torch.set_num_threads(1)
    print("| model, sizes | newest ms | default | again | nodes: default / newest |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        for subject in (one for one in subjects() if re.search(given.only, one.name)):
            timed(subject, given.runs, Path(folder))


if __name__ == "__main__":
    main()
