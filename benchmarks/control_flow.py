"""Control flow: what do If and Scan cost when the file runs?

A file with a branch is compared with the straight file of the path that is taken, a loop kept as Scan with the static
file in which torch unrolled it. All in one run, in random order, on one thread; the ratio of the fastest runs is shown.

Run: python benchmarks/control_flow.py [--rounds N]
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from pathlib import Path
from typing import Any

import onnxruntime
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

import anyshape


class Encoder(nn.Module):
    """Six layers, and a branch on the length between them; `branches=False` is the path that short inputs take."""

    def __init__(self, *, branches: bool) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(256, 256) for _ in range(6))
        self.branches = branches

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x).relu()
            if self.branches and x.shape[1] > 512:
                x = x - x.mean(1, keepdim=True)
        return x.softmax(-1)


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(64, 128)

    def forward(self, x: Tensor) -> Tensor:
        state = x.new_zeros(x.shape[0], 128)
        states = []
        for t in range(x.shape[1]):
            state = self.cell(x[:, t], state)
            states.append(state)
        return torch.stack(states, 1)


def session(path: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def fastest(sessions: dict[str, onnxruntime.InferenceSession], x: Tensor, rounds: int) -> dict[str, float]:
    """The fastest of many runs each, taken in random order so that load meets all alike."""
    order = [name for name in sessions for _ in range(rounds)]
    random.Random(0).shuffle(order)
    best = dict.fromkeys(sessions, float("inf"))
    for name in [*sessions, *order]:
        feeds = {sessions[name].get_inputs()[0].name: x.numpy()}
        start = time.perf_counter()
        sessions[name].run(None, feeds)
        best[name] = min(best[name], time.perf_counter() - start)
    return best


def static(model: nn.Module, x: Tensor, path: Path) -> Path:
    torch.onnx.export(model, (x,), str(path), dynamo=True, verbose=False)
    return path


def dynamic(model: nn.Module, x: Tensor, dims: str, path: Path) -> Path:
    anyshape.export(model, (x,), path, dims={"x": dims}, quick=True)
    return path


def compare(folder: Path, rounds: int) -> list[tuple[str, dict[str, float]]]:
    torch.manual_seed(0)
    wide, sequence = torch.randn(4, 64, 256), torch.randn(8, 50, 64)
    branched, straight, recurrent = Encoder(branches=True).eval(), Encoder(branches=False).eval(), Recurrent().eval()
    straight.load_state_dict(branched.state_dict())
    dims: dict[str, Any] = {"wide": "batch n 256", "sequence": "batch steps 64"}
    files = {
        "branch": {
            "ours": dynamic(branched, wide, dims["wide"], folder / "joined.onnx"),
            "theirs": dynamic(straight, wide, dims["wide"], folder / "straight.onnx"),
        },
        "loop": {
            "ours": dynamic(recurrent, sequence, dims["sequence"], folder / "scan.onnx"),
            "theirs": static(recurrent, sequence, folder / "unrolled.onnx"),
        },
    }
    inputs = {"branch": wide, "loop": sequence}
    return [
        (name, fastest({key: session(path) for key, path in pair.items()}, inputs[name], rounds))
        for name, pair in files.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    table = Table("", "this file", "compared with", "ratio")
    titles = {"branch": "six branches as If / the straight path", "loop": "50 steps as Scan / unrolled, static"}
    with tempfile.TemporaryDirectory() as folder:
        for name, best in compare(Path(folder), rounds):
            ours, theirs = best["ours"], best["theirs"]
            table.add_row(titles[name], f"{ours * 1e3:.3f} ms", f"{theirs * 1e3:.3f} ms", f"{ours / theirs:.3f}")
    Console().print(table)


if __name__ == "__main__":
    main()
