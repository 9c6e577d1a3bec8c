"""Memory of make_dynamic: what freeing a file with large weights beside it takes, in units of the weights.

The file is made here, never held in memory, and freed in a process of its own. The resident set is counted, pages of
mapped files among it, though these can be dropped at any time. Goal: at most 1.2 times the weights.
Run: python benchmarks/make_dynamic_memory.py [--gigabytes 2] [--only REGEX] [--runs 1] [--folder DIR]
"""

from __future__ import annotations

import argparse
import json
import math
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
import onnx_ir as ir

import anyshape
from memory import Usage, Watch, written

_LAYERS = 16
_HEADS = 16
_LENGTH = 8
_GOAL = 1.2
KINDS = ("MatMul", "Gemm")

# ---- the file


def build(path: Path, size: int, kind: str) -> None:
    """A static file of layers; between products, heads are split off by numbers and put together again."""
    width = math.isqrt(size // 4 // _LAYERS) // _HEADS * _HEADS
    shape = [1, _LENGTH, width] if kind == "MatMul" else [1, width]
    entry = ir.Value(name="x", shape=ir.Shape(shape), type=ir.TensorType(ir.DataType.FLOAT))
    nodes: list[ir.Node] = []
    constants: list[ir.Value] = []
    value, chance = entry, np.random.default_rng(0)
    data = path.with_name(path.name + ".data")
    with data.open("wb") as file:
        for layer in range(_LAYERS):
            weight = chance.standard_normal((width, width), dtype=np.float32) / np.float32(math.sqrt(width))
            tensor = ir.ExternalTensor(
                data.name, file.tell(), weight.nbytes, ir.DataType.FLOAT, shape=ir.Shape(weight.shape),
                name=f"weight_{layer}", base_dir=str(path.parent),
            )  # fmt: skip
            file.write(weight.tobytes())
            constants.append(_constant(tensor))
            value = _append(nodes, "Tanh", _append(nodes, kind, value, constants[-1]))
            for target in ([*shape[:-1], _HEADS, width // _HEADS], shape):
                constants.append(_constant(ir.tensor(np.array(target, np.int64), name=f"target_{len(constants)}")))
                value = _append(nodes, "Reshape", value, constants[-1])
    value.shape, value.type = ir.Shape(shape), ir.TensorType(ir.DataType.FLOAT)
    graph = ir.Graph([entry], [value], nodes=nodes, initializers=constants, opset_imports={"": 18}, name="main")
    ir.save(ir.Model(graph, ir_version=9), path)


def _constant(tensor: ir.TensorProtocol) -> ir.Value:
    return ir.Value(
        name=tensor.name, const_value=tensor, shape=ir.Shape(tensor.shape), type=ir.TensorType(tensor.dtype)
    )


def _append(nodes: list[ir.Node], operator: str, *inputs: ir.Value) -> ir.Value:
    node = ir.node(operator, inputs)
    node.name = node.outputs[0].name = f"{operator.lower()}_{len(nodes)}"
    nodes.append(node)
    return node.outputs[0]


# ---- one measurement


def measure(kind: str, size: int, folder: Path) -> Usage:
    for name, bytes_ in (("warm", 2**16), ("static", size)):
        build(folder / f"{name}.onnx", bytes_, kind)
    anyshape.make_dynamic(folder / "warm.onnx", out=folder / "warm.onnx")
    usage = Usage(weights=(folder / "static.onnx.data").stat().st_size)
    before, started = written(), time.monotonic()
    with Watch(usage) as watch:
        result = anyshape.make_dynamic(folder / "static.onnx", out=folder / "dynamic.onnx", progress=watch.tell)
    usage.verdict, usage.seconds, usage.written = result.verdict, time.monotonic() - started, written() - before
    usage.size = sum(path.stat().st_size for path in folder.glob("dynamic*"))
    return usage


def in_a_child(kind: str, size: int, parent: Path | None) -> Usage:
    with tempfile.TemporaryDirectory(prefix="memory-", dir=parent) as folder:
        command = [sys.executable, str(Path(__file__).resolve()), "--child", kind, str(size)]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return Usage(**json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=2.0)
    parser.add_argument("--only", default="")
    parser.add_argument("--runs", type=int, default=1, help="the run that took the least memory counts")
    parser.add_argument("--folder", type=Path, default=None, help="where to write; not in memory")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(asdict(measure(options.child[0], int(options.child[1]), Path.cwd()))))
        return
    print(f"{options.gigabytes:g} GB of weights; in units of the weights")
    print(f"{'layers':<8} {'free':>7} {'check':>7} {'mapped':>7} {'resident':>8} {'written':>8} {'seconds':>8}")
    for kind in (kind for kind in KINDS if re.search(options.only, kind)):
        found = [in_a_child(kind, int(options.gigabytes * 2**30), options.folder) for _ in range(options.runs)]
        usage = min(found, key=lambda one: one.together)
        own = [usage.anonymous.get(stage, 0) for stage in ("convert", "check")]
        shares = [*own, usage.mapped, usage.together, usage.written]
        columns = " ".join(f"{share / usage.weights:>7.3f}" for share in shares)
        met = "" if usage.together <= _GOAL * usage.weights else "  misses the goal"
        print(f"{kind:<8} {columns} {usage.seconds:>9.1f}  {usage.verdict}{met}", flush=True)


if __name__ == "__main__":
    main()
