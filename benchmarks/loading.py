"""What a call of a loaded file costs beyond ONNX Runtime's own `session.run`: microseconds, and the ratio of both.

Three inputs with shared dims and ranges, given as arrays, by name, as tensors (which the other side has to convert by
hand) and nested. Both sides take turns in one run on one thread, in rounds of many calls; the fastest round of each
counts, in CPU time.

Run: python benchmarks/loading.py [--only REGEX] [--runs N]
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

import anyshape

CALLS = 500


class Flat(nn.Module):
    def forward(self, ids: Tensor, mask: Tensor, bias: Tensor) -> dict[str, Tensor]:
        return {"y": ids * mask + bias}


class Nested(nn.Module):
    def forward(self, batch: dict[str, Tensor], rest: list[Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        y = batch["ids"] * batch["mask"] + rest[0]
        return y, {"y": y}


def files(folder: Path) -> dict[str, anyshape.loading.Loaded]:
    x, bias = torch.randn(2, 8), torch.randn(8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    sizes = {"seq": "8..512 step 8"}
    flat = {"ids": "batch seq", "mask": "batch seq", "bias": "seq"}
    nested = {"batch.*": "batch seq", "rest.0": "seq"}
    anyshape.export(Flat(), (x, x, bias), folder / "flat.onnx", dims=flat, sizes=sizes, quick=True)
    anyshape.export(
        Nested(), ({"ids": x, "mask": x}, [bias]), folder / "nested.onnx", dims=nested, sizes=sizes, quick=True
    )
    return {name: anyshape.load(folder / f"{name}.onnx", session_options=options) for name in ("flat", "nested")}


def pairs(folder: Path) -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    """What is measured: the loaded file, and the same arrays in the bare session."""
    loaded = files(folder)
    flat, nested = loaded["flat"], loaded["nested"]
    arrays = {name: np.ones(shape, np.float32) for name, shape in {"ids": (3, 16), "mask": (3, 16), "bias": 16}.items()}
    ids, mask, bias = arrays.values()
    tensors = [torch.from_numpy(array) for array in arrays.values()]
    inner = dict(zip(("batch.ids", "batch.mask", "rest.0"), arrays.values(), strict=True))
    bare = lambda: flat.session.run(None, arrays)  # noqa: E731

    def converted() -> Tensor:
        (y,) = flat.session.run(None, {name: t.numpy() for name, t in zip(arrays, tensors, strict=True)})
        return torch.from_numpy(y)

    return {
        "arrays": (lambda: flat(ids, mask, bias), bare),
        "by name": (lambda: flat(ids=ids, mask=mask, bias=bias), bare),
        "a dict of arrays": (lambda: flat.run(arrays), bare),
        "tensors": (lambda: flat(*tensors), converted),
        "nested": (
            lambda: nested({"ids": ids, "mask": mask}, [bias]),
            lambda: nested.session.run(None, inner),
        ),
    }


def seconds(call: Callable[[], Any]) -> float:
    start = time.process_time()
    for _ in range(CALLS):
        call()
    return (time.process_time() - start) / CALLS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="what to measure, as a regular expression")
    parser.add_argument("--runs", type=int, default=20, help="rounds of each")
    wishes = parser.parse_args()
    torch.set_num_threads(1)
    table = Table("three inputs", "loaded", "session.run", "beyond it", "ratio")
    with tempfile.TemporaryDirectory() as folder:
        for name, (ours, theirs) in pairs(Path(folder)).items():
            if not re.search(wishes.only, name):
                continue
            rounds = [(seconds(ours), seconds(theirs)) for _ in range(wishes.runs)]
            best, bare = (min(column) * 1e6 for column in zip(*rounds, strict=True))
            table.add_row(name, f"{best:.1f} µs", f"{bare:.1f} µs", f"{best - bare:.1f} µs", f"{best / bare:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
