"""Scaling: seconds and memory of an export over the number of nodes, with torch.onnx.export beside it.

Each export runs in a process of its own, after a small one that warms it up; CPU seconds, one thread. The memory is
what the process needed at its peak beyond what it held before the export. torch stops at --most-for-torch nodes, since
its time grows with the square.
Run: python benchmarks/scaling.py [--nodes 10,100,1000,10000] [--png scaling.png] [--json [FILE]]
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from export_time import Subject, by_anyshape, by_torch, cpu_seconds
from figures import add_json_option, keep

_NODES_OF_A_BLOCK = 6
_WIDTH = 32


class Block(nn.Module):
    """Six nodes of ONNX: a norm, two products with their sums, an activation; the residual sum is one of them."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(_WIDTH)
        self.first, self.second = nn.Linear(_WIDTH, _WIDTH), nn.Linear(_WIDTH, _WIDTH, bias=False)

    def forward(self, x):
        return x + self.second(torch.relu(self.first(self.norm(x))))


def subject(nodes: int) -> Subject:
    blocks = max(1, round(nodes / _NODES_OF_A_BLOCK))
    build = lambda: nn.Sequential(*(Block() for _ in range(blocks)))  # noqa: E731
    return Subject(f"{nodes}", build, (torch.randn(2, 7, _WIDTH),), {"input": "batch seq 32"})


def run_one(exporter: str, nodes: int) -> dict[str, Any]:
    """In a new process: one small export to warm up, then the one that counts."""
    torch.set_num_threads(1)
    export: Callable[..., Any] = by_torch if exporter == "torch" else by_anyshape
    small, wanted = subject(10), subject(nodes)
    cpu_seconds(lambda: export(small, small.build().eval()))
    torch.manual_seed(0)
    model = wanted.build().eval()
    before = _memory("VmRSS")
    whole, made = cpu_seconds(lambda: export(wanted, model))
    peak = max(_memory("VmHWM") - before, 0.0)
    check = made[1] if exporter == "anyshape" else 0.0
    count = sum(1 for _ in made[0].model.graph) if exporter == "anyshape" else None
    return {"nodes": count, "convert": whole - check, "check": check, "memory": peak}


def _memory(name: str) -> float:
    """In MiB, as the system counts it."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def measure(exporter: str, nodes: int) -> dict[str, Any]:
    command = [sys.executable, "-W", "ignore", __file__, "--one", exporter, "--nodes", str(nodes)]
    ran = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return found


def exponent(rows: list[dict[str, Any]], key: str) -> float:
    """p of `time ~ nodes ** p` between the last two rows: 1 is linear, 2 the square."""
    first, last = rows[-2:]
    return math.log(last[key] / first[key]) / math.log(last["asked"] / first["asked"])


def draw(ours: list[dict[str, Any]], theirs: list[dict[str, Any]], path: str) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    lines = (("anyshape, conversion", ours, "convert", "o-"), ("anyshape, verification", ours, "check", "o--"))
    for label, rows, key, style in (*lines, ("torch.onnx.export", theirs, "convert", "s-")):
        axes.loglog([row["asked"] for row in rows], [row[key] for row in rows], style, label=label)
    axes.set(xlabel="nodes of the file", ylabel="CPU seconds", title="Export time over the size of the graph")
    axes.grid(visible=True, which="both", alpha=0.2)
    axes.legend()
    figure.savefig(path, dpi=120)


def by_nodes(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """By how many were asked for."""
    shown = ("nodes", "convert", "check", "memory")
    return {f"{row['asked']:,}": {name: row[name] for name in shown if row[name] is not None} for row in rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", default="10,30,100,300,1000,3000,10000")
    parser.add_argument("--most-for-torch", type=int, default=3000)
    parser.add_argument("--png", help="draw the table there; needs matplotlib")
    parser.add_argument("--one", choices=["anyshape", "torch"], help=argparse.SUPPRESS)
    add_json_option(parser, "scaling")
    given = parser.parse_args()
    nodes = [int(text) for text in given.nodes.split(",")]
    if given.one:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            print(json.dumps(run_one(given.one, nodes[0])))
        return
    print(f"CPU seconds, warm, one thread; torch {torch.__version__}, Python {platform.python_version()}")
    print(" nodes  convert   check    MiB   torch    MiB  torch/convert")
    ours, theirs = [], []
    for count in nodes:
        ours.append({**measure("anyshape", count), "asked": count})
        row = ours[-1]
        text = f"{row['nodes']:>6} {row['convert']:>8.2f} {row['check']:>7.2f} {row['memory']:>6.0f}"
        if count <= given.most_for_torch:
            theirs.append({**measure("torch", count), "asked": count})
            peer = theirs[-1]
            text += f" {peer['convert']:>7.2f} {peer['memory']:>6.0f} {peer['convert'] / row['convert']:>14.1f}"
        print(text, flush=True)
    if len(ours) > 1 and len(theirs) > 1:
        print(
            f"\ntime grows with nodes ** {exponent(ours, 'convert'):.2f}, torch's ** {exponent(theirs, 'convert'):.2f}"
        )
    if given.json:
        keep(given.json, {"anyshape": by_nodes(ours), "torch": by_nodes(theirs)})
    if given.png:
        draw(ours, theirs, given.png)


if __name__ == "__main__":
    main()
