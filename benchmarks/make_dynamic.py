"""Static files made dynamic: anyshape beside the answers in circulation, judged against PyTorch at several sizes.

Every file is right (all outputs as PyTorch gives them, at every size), refused (the tool says no), an error (ONNX
Runtime says no) or WRONG (it runs and gives something else). For sequences, dims that no check covers are written
`unchecked`: their number stands below the table. Sizes beyond a limit that anyshape states are not judged.
Run: python benchmarks/make_dynamic.py [--only REGEX] [--folder DIR] [--dims batch,sequence] [--tools REGEX]
"""

from __future__ import annotations

import argparse
import copy
import importlib.util
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch

import anyshape
from silence import silence
from static_files import BATCHES, EXPORTERS, LENGTH, Architecture, StaticFile, architectures, make_file

Sizes = tuple[int, int]
"""Samples and steps."""
RIGHT, REFUSED, ERROR, WRONG = "right", "refused", "error", "WRONG"
BATCH_SIZES: tuple[Sizes, ...] = ((1, LENGTH), (2, LENGTH), (3, LENGTH), (5, LENGTH), (8, LENGTH))
BOTH_SIZES: tuple[Sizes, ...] = ((1, LENGTH), (3, LENGTH), (2, 11), (3, 5), (1, 1), (4, 24), (2, 40))
_TOLERANCE = 2e-4
"""Of the largest value: far above rounding, far below any mistake about a size."""


class RefusedError(Exception):
    """The tool itself says that it cannot."""


@dataclass(frozen=True)
class Task:
    """One file, and what is wanted of it."""

    file: StaticFile
    wants_sequence: bool

    @property
    def dims(self) -> dict[str, str]:
        text = self.file.architecture.dims
        return dict(text) if self.wants_sequence else {name: axes.replace("seq", "_") for name, axes in text.items()}

    def axes(self) -> dict[str, dict[int, str]]:
        rows = {name: enumerate(axes.split()) for name, axes in self.dims.items()}
        return {name: {axis: dim for axis, dim in row if dim != "_"} for name, row in rows.items()}


@dataclass(frozen=True)
class Made:
    """What a tool wrote, and for which sizes it says that it is good."""

    path: Path
    is_served: Callable[[Sizes], bool] = lambda _: True
    note: str = ""


# ---- tools


def ours(task: Task, out: Path) -> Made:
    try:
        result = anyshape.make_dynamic(
            task.file.path, task.dims, out=out, unchecked=["seq"] if task.wants_sequence else []
        )
    except anyshape.ExportError as error:
        raise RefusedError(error.findings[0].headline if error.findings else str(error)) from None
    bounds = dict(result.dims)
    limits = f" [{'; '.join(result.limits)}]" if result.limits else ""

    def is_served(sizes: Sizes) -> bool:
        return all(size in bounds[dim] for dim, size in zip(("batch", "seq"), sizes, strict=True) if dim in bounds)

    return Made(out, is_served, f"{result.verdict}{limits}")


def named(task: Task) -> onnx.ModelProto:
    """dim_param on inputs and outputs: the answer found most often."""
    model = onnx.load(task.file.path)
    axes = task.axes()
    for value in model.graph.input:
        for axis, dim in axes.get(value.name, {}).items():
            value.type.tensor_type.shape.dim[axis].dim_param = dim
    for value in model.graph.output:
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if axis == 0 and dim.dim_value == task.file.batch:
                dim.dim_param = "batch"
            elif task.wants_sequence and dim.dim_value == LENGTH:
                dim.dim_param = "seq"
    del model.graph.value_info[:]
    return model


def dim_param(task: Task, out: Path) -> Made:
    onnx.save(named(task), out)
    return Made(out)


def rebatched(task: Task, out: Path) -> Made:
    """The script of onnx's issue 2182: names, and -1 in front of every Reshape."""
    model = named(task)
    targets = {node.input[1] for node in model.graph.node if node.op_type == "Reshape"}
    for node in model.graph.node:
        if node.op_type == "Constant" and node.output[0] in targets:
            node.attribute[0].t.CopyFrom(_with_minus_one(node.attribute[0].t))
    for tensor in model.graph.initializer:
        if tensor.name in targets:
            tensor.CopyFrom(_with_minus_one(tensor))
    onnx.save(model, out)
    return Made(out)


def _with_minus_one(tensor: onnx.TensorProto) -> onnx.TensorProto:
    target = onnx.numpy_helper.to_array(tensor).copy()
    if target.ndim == 1 and target.size and -1 not in target:
        target[0] = -1
    return onnx.numpy_helper.from_array(target, tensor.name)


def onnxsim(task: Task, out: Path) -> Made:
    import onnxsim as tool

    onnx.save(tool.simplify(named(task))[0], out)
    return Made(out)


def onnxslim(task: Task, out: Path) -> Made:
    import onnxslim as tool

    onnx.save(tool.slim(named(task)), out)
    return Made(out)


def sbi4onnx(task: Task, out: Path) -> Made:
    from sbi4onnx import initialize

    if task.wants_sequence:
        raise RefusedError("the batch alone")
    initialize(
        input_onnx_file_path=str(task.file.path), output_onnx_file_path=str(out),
        initialization_character_string="batch", non_verbose=True,
    )  # fmt: skip
    return Made(out)


TOOLS: Mapping[str, tuple[str | None, Callable[[Task, Path], Made]]] = {
    "anyshape": (None, ours),
    "dim_param": (None, dim_param),
    "rebatch": (None, rebatched),
    "onnxsim": ("onnxsim", onnxsim),
    "onnxslim": ("onnxslim", onnxslim),
    "sbi4onnx": ("sbi4onnx", sbi4onnx),
}
"""Tool -> the package that it needs, and what it does."""


def installed(pattern: str) -> dict[str, Callable[[Task, Path], Made]]:
    found = {}
    for name, (package, tool) in TOOLS.items():
        if not re.search(pattern, name):
            continue
        if package is not None and importlib.util.find_spec(package) is None:
            print(f"{name} is not installed and is left out")
        else:
            found[name] = tool
    return found


# ---- judging


@dataclass(frozen=True)
class Verdict:
    outcome: str
    reason: str = ""


def judged(task: Task, tool: Callable[[Task, Path], Made], out: Path, model: torch.nn.Module) -> Verdict:
    out.unlink(missing_ok=True)  # what the tool before wrote is not this one's
    try:
        with silence():
            made = tool(task, out)
    except Exception as error:
        return Verdict(REFUSED, " ".join(f"{type(error).__name__}: {error}".split())[:200])
    sizes = [one for one in (BOTH_SIZES if task.wants_sequence else BATCH_SIZES) if made.is_served(one)]
    return _right_or_not(task, made, model, sizes)


def _right_or_not(task: Task, made: Made, model: torch.nn.Module, sizes: list[Sizes]) -> Verdict:
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    try:
        session = onnxruntime.InferenceSession(str(made.path), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        return Verdict(ERROR, str(error).splitlines()[0])
    for one in sizes:
        try:
            difference = _difference(task.file.architecture, session, model, one)
        except NotThereError:
            continue
        except Exception as error:
            return Verdict(ERROR, f"at {one}: {str(error).splitlines()[0][:150]}")
        if difference:
            return Verdict(WRONG, f"at {one}: {difference}")
    return Verdict(RIGHT, made.note)


class NotThereError(Exception):
    """PyTorch itself does not take these sizes."""


def _difference(architecture: Architecture, session, model: torch.nn.Module, sizes: Sizes) -> str:
    torch.manual_seed(sum(sizes))
    inputs = architecture.inputs(*sizes)
    try:
        with torch.no_grad():
            expected = model(*inputs.values())
    except Exception as error:
        raise NotThereError from error
    expected = [expected] if isinstance(expected, torch.Tensor) else list(expected)
    names = {one.name for one in session.get_inputs()}
    got = session.run(None, {name: value.numpy() for name, value in inputs.items() if name in names})
    for mine, theirs in zip(got, expected, strict=True):
        reference = theirs.numpy()
        if mine.shape != reference.shape:
            return f"shape {mine.shape} for {reference.shape}"
        if not np.allclose(
            mine, reference, rtol=0, atol=_TOLERANCE * max(1e-6, np.abs(reference).max()), equal_nan=True
        ):
            return f"differs by {np.abs(mine - reference).max():.2g}"
    return ""


class AnyBatch(torch.nn.Module):
    """A literal view runs at its own batch alone: the reference for others is made sample by sample."""

    def __init__(self, model: torch.nn.Module, batch: int) -> None:
        super().__init__()
        self.model, self.batch = model, batch

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.model.batch = x.shape[0]
        return self.model(x)


def reference_of(file: StaticFile) -> torch.nn.Module:
    model = copy.deepcopy(file.model)
    return AnyBatch(model, file.batch) if file.architecture.name == "literal_view" else model


# ---- the table


def files(pattern: str, folder: Path) -> list[StaticFile]:
    made = []
    for architecture in architectures():
        for batch in BATCHES:
            for exporter in EXPORTERS:
                name = f"{architecture.name}.{exporter}.b{batch}"
                if not re.search(pattern, name):
                    continue
                file = make_file(architecture, exporter, batch, folder)
                if isinstance(file, str):
                    print(f"{name}: the exporter fails: {file[:120]}", flush=True)
                else:
                    made.append(file)
    return made


def run(tasks: list[Task], tools: Mapping[str, Callable[[Task, Path], Made]], folder: Path) -> dict[str, Counter[str]]:
    counts: dict[str, Counter[str]] = {name: Counter() for name in tools}
    for task in tasks:
        model = reference_of(task.file)
        row = []
        started = time.monotonic()
        for name, tool in tools.items():
            verdict = judged(task, tool, folder / "made.onnx", model)
            counts[name][verdict.outcome] += 1
            if name == "anyshape" and verdict.reason.startswith("unchecked"):
                counts[name]["unchecked"] += 1
            row.append(f"{name} {verdict.outcome}")
            if name == "anyshape" and (verdict.outcome != RIGHT or "[" in verdict.reason):
                row[-1] += f" ({verdict.reason})"
        print(f"{task.file.name:32} {', '.join(row)}  {time.monotonic() - started:.1f} s", flush=True)
    return counts


def show(title: str, count: int, counts: Mapping[str, Counter[str]]) -> None:
    print(f"\n{title}: {count} files\n\n| tool | right | refused | error | wrong |\n|---|---|---|---|---|")
    for name, one in counts.items():
        print(f"| {name} | {one[RIGHT]} | {one[REFUSED]} | {one[ERROR]} | {one[WRONG]} |")
    for name, one in counts.items():
        if one["unchecked"]:
            print(f"\n{one['unchecked']} of the right files of {name} were written unchecked: no check covers a dim.")
    print(flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="files whose name matches")
    parser.add_argument("--tools", default="", help="tools whose name matches")
    parser.add_argument("--dims", default="batch,sequence")
    parser.add_argument("--folder", type=Path, help="where the static files are kept")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch) / "static"
        folder.mkdir(parents=True, exist_ok=True)
        found, tools = files(options.only, folder), installed(options.tools)
        if "batch" in options.dims:
            tasks = [Task(file, wants_sequence=False) for file in found]
            show("batch", len(tasks), run(tasks, tools, Path(scratch)))
        if "sequence" in options.dims:
            tasks = [Task(file, wants_sequence=True) for file in found if file.architecture.has_sequence]
            show("batch and sequence", len(tasks), run(tasks, tools, Path(scratch)))


if __name__ == "__main__":
    main()
