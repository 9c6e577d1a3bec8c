"""Memory and size: what exporting large weights takes beyond the loaded model, in units of the weights.

Each measurement runs in a process of its own. Anonymous memory is counted: pages of a mapped file can be dropped at any
time, and are shown apart. So is the one run with ONNX Runtime's default options, which packs and folds weights as
whoever opens the file will do. Each weight is to be written once.
Run: python benchmarks/memory.py [--gigabytes 1] [--only REGEX] [--runs 1] [--folder DIR] [--json [FILE]]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import platform
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

import onnxruntime
import torch
from torch import nn

import anyshape
from anyshape.testbench import checker
from figures import PACKAGES, add_json_option, keep, this_run
from goals import report
from silence import silence

_LAYERS = 64
_VOCABULARY_SHARE = 32
"""A vocabulary has so many times more rows than columns."""

# ---- the models


@dataclass(frozen=True)
class Subject:
    model: nn.Module
    args: tuple[Any, ...]
    dims: dict[str, str]


def stack(size: int, dtype: torch.dtype, device: str = "cpu") -> Subject:
    """Many layers, none of which counts for much."""
    width = math.isqrt(size // dtype.itemsize // _LAYERS)
    rows = [nn.Linear(width, width, dtype=dtype, device=device) for _ in range(_LAYERS)]
    return Subject(nn.Sequential(*rows), (torch.randn(3, width, dtype=dtype),), {"input": f"batch {width}"})


def sequences(size: int, dtype: torch.dtype) -> Subject:
    """The same on three axes, where a layer is written as a product and not as Gemm."""
    subject = stack(size, dtype)
    (rows,) = subject.args
    return Subject(subject.model, (rows.expand(2, *rows.shape),), {"input": f"batch seq {rows.shape[1]}"})


class Tied(nn.Module):
    """A table of words that is the output layer, too: nearly all of the weights are one tensor."""

    def __init__(self, size: int, dtype: torch.dtype) -> None:
        super().__init__()
        width = math.isqrt(size // dtype.itemsize // _VOCABULARY_SHARE)
        self.words = nn.Embedding(_VOCABULARY_SHARE * width, width, dtype=dtype)
        self.inner = nn.Linear(width, width, dtype=dtype)
        self.head = nn.Linear(width, _VOCABULARY_SHARE * width, bias=False, dtype=dtype)
        self.head.weight = self.words.weight

    def forward(self, tokens: torch.Tensor) -> Any:
        return self.head(torch.relu(self.inner(self.words(tokens))))


def tied(size: int, dtype: torch.dtype) -> Subject:
    return Subject(Tied(size, dtype), (torch.randint(0, 100, (2, 5)),), {"tokens": "batch seq"})


def convolutions(size: int, dtype: torch.dtype) -> Subject:
    channels = math.isqrt(size // dtype.itemsize // 9 // _LAYERS)
    rows = [nn.Conv2d(channels, channels, 3, padding=1, dtype=dtype) for _ in range(_LAYERS)]
    return Subject(
        nn.Sequential(*rows), (torch.randn(1, channels, 3, 4, dtype=dtype),), {"input": "batch _ height width"}
    )


class Kept(nn.Module):
    """A layer whose weight is a buffer, as quantised ones are."""

    weight: torch.Tensor

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.register_buffer("weight", layer.weight.detach())

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002  as the other models call it
        return input @ self.weight


def buffers(size: int, dtype: torch.dtype) -> Subject:
    subject = stack(size, dtype)
    rows = [Kept(layer) for layer in subject.model.children() if isinstance(layer, nn.Linear)]
    return Subject(nn.Sequential(*rows), subject.args, subject.dims)


def mapped(size: int, dtype: torch.dtype) -> Subject:
    """The stack again, its weights left in the file that they come from."""
    with tempfile.NamedTemporaryFile(dir=".", suffix=".pt") as file:
        child = f"import torch, memory; torch.save(memory.stack({size}, {dtype}).model.state_dict(), {file.name!r})"
        subprocess.run([sys.executable, "-c", child], check=True, env={"PYTHONPATH": str(Path(__file__).parent)})
        subject = stack(size, dtype, device="meta")
        subject.model.load_state_dict(torch.load(file.name, mmap=True), assign=True)
    return subject


SUBJECTS: dict[str, Callable[[int], Subject]] = {
    "layers float32": lambda size: stack(size, torch.float32),
    "layers float16": lambda size: stack(size, torch.float16),
    "layers bfloat16": lambda size: stack(size, torch.bfloat16),
    "sequences": lambda size: sequences(size, torch.float32),
    "layers mapped": lambda size: mapped(size, torch.float32),
    "layers in buffers": lambda size: buffers(size, torch.float32),
    "convolutions": lambda size: convolutions(size, torch.float32),
    "tied float32": lambda size: tied(size, torch.float32),
    "tied bfloat16": lambda size: tied(size, torch.bfloat16),
}

# ---- one measurement

STAGES = ("convert", "check", "default")


@dataclass
class Usage:
    """Bytes: the most at any time since the start, and what was written."""

    weights: int = 0
    anonymous: dict[str, int] = field(default_factory=dict)
    """Stage -> bytes beyond the loaded model."""
    mapped: int = 0
    together: int = 0
    """Anonymous and mapped: the resident set."""
    written: int = 0
    size: int = 0
    seconds: float = 0.0
    verdict: str = ""


def resident() -> tuple[int, int]:
    """Anonymous bytes of this process, and those that a file can give back."""
    rows = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    anonymous, file, shared = (int(rows[name].split()[0]) * 1024 for name in ("RssAnon", "RssFile", "RssShmem"))
    return anonymous + shared, file


def written() -> int:
    rows = dict(line.split(": ", 1) for line in Path("/proc/self/io").read_text().splitlines())
    return int(rows["wchar"])


class Watch:
    """Looks at the process's memory every few milliseconds, stage by stage."""

    def __init__(self, usage: Usage) -> None:
        self._usage, self._start = usage, resident()
        self.stage = "convert"
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        usage = self._usage
        while not self._over.wait(0.002):
            stage = self.stage  # in which the reading began: what frees a stage's memory is a part of it
            anonymous, file = (now - before for now, before in zip(resident(), self._start, strict=True))
            usage.anonymous[stage] = max(usage.anonymous.get(stage, 0), anonymous)
            usage.mapped = max(usage.mapped, file)
            usage.together = max(usage.together, anonymous + file)

    @contextlib.contextmanager
    def default_run_apart(self) -> Iterator[None]:
        real = checker.run_by_default

        def apart(*args: Any) -> Any:
            self.stage = "default"
            try:
                return real(*args)
            finally:
                self.stage = "check"

        checker.run_by_default = apart
        yield
        checker.run_by_default = real

    def tell(self, text: str) -> None:
        self.stage = "check" if text.startswith("checking") else "convert"


def by_torch(subject: Subject, path: Path, _watch: Watch) -> str:
    names = {
        k: {i: n for i, n in enumerate(v.split()) if n.isidentifier() and n != "_"} for k, v in subject.dims.items()
    }
    torch.onnx.export(subject.model, subject.args, path, dynamo=True, dynamic_shapes=names, verbose=False)
    return "unchecked"


def by_anyshape(subject: Subject, path: Path, watch: Watch) -> str:
    sizes = {
        name: "1..4" for row in subject.dims.values() for name in row.split() if name.isidentifier() and name != "_"
    }
    with watch.default_run_apart():
        return anyshape.export(
            subject.model, subject.args, path, dims=subject.dims, sizes=sizes, progress=watch.tell
        ).verdict


def warm_up(export: Callable[[Subject, Path, Watch], str], folder: Path) -> None:
    """What a process loads once, whatever the weights are."""
    for make in (stack, tied):
        export(make(2**16, torch.float32), folder / "warm.onnx", Watch(Usage()))
    for path in folder.glob("warm*"):
        path.unlink()


def measure(name: str, tool: str, size: int, folder: Path) -> Usage:
    export = by_torch if tool == "torch" else by_anyshape
    usage = Usage()
    with silence():
        torch.manual_seed(0)
        warm_up(export, folder)
        subject = SUBJECTS[name](size)
        subject.model.eval()
        tensors = {t.data_ptr(): t.nbytes for t in (*subject.model.parameters(), *subject.model.buffers())}
        usage.weights = sum(tensors.values())
        before, started = written(), time.monotonic()
        with Watch(usage) as watch:
            usage.verdict = export(subject, folder / "model.onnx", watch)
        usage.seconds, usage.written = time.monotonic() - started, written() - before
    usage.size = sum(path.stat().st_size for path in folder.iterdir())
    return usage


# ---- all of them


def in_a_child(name: str, tool: str, size: int, parent: Path | None) -> Usage | None:
    with tempfile.TemporaryDirectory(prefix="memory-", dir=parent) as folder:
        command = [sys.executable, str(Path(__file__).resolve()), "--child", name, tool, str(size)]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stderr.strip().splitlines()[-1:])
        return None
    return Usage(**json.loads(done.stdout.splitlines()[-1]))


def row(name: str, tool: str, usage: Usage) -> str:
    def share(count: int) -> str:
        return f"{count / usage.weights:>8.3f}"

    stages = (usage.anonymous.get(stage) for stage in STAGES)
    shown = (share(count) if count is not None else f"{'-':>8}" for count in stages)
    columns = (*shown, share(usage.mapped), share(usage.written), share(usage.size))
    return f"{name:<18} {tool:<9} {' '.join(columns)} {usage.seconds:>8.1f}  {usage.verdict}"


def kept_row(name: str, tool: str, gigabytes: float, usage: Usage) -> dict[str, Any]:
    """Shares of the weights."""
    parts = {**{stage: usage.anonymous.get(stage) for stage in STAGES}, "mapped": usage.mapped,
             "written": usage.written, "file": usage.size}  # fmt: skip
    shares = {part: None if count is None else round(count / usage.weights, 4) for part, count in parts.items()}
    return {"subject": name, "gigabytes": gigabytes, "tool": tool, **shares}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--only", default="")
    parser.add_argument("--tools", nargs="+", default=["torch", "anyshape"])
    parser.add_argument("--runs", type=int, default=1, help="the run that took the least memory counts")
    parser.add_argument("--folder", type=Path, default=None, help="where to write; not in memory")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    add_json_option(parser, "memory")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.child:
        name, tool, size = options.child
        print(json.dumps(asdict(measure(name, tool, int(size), Path.cwd()))))
        return
    versions = f"torch {torch.__version__}, onnxruntime {onnxruntime.__version__}, Python {platform.python_version()}"
    print(f"{options.gigabytes:g} GB of weights; beyond the loaded model, in units of the weights; {versions}")
    print(f"{'model':<18} {'tool':<9}  convert    check  default   mapped  written     file  seconds")
    lines, rows = list[str](), dict[str, dict[str, Any]]()
    for name in (name for name in SUBJECTS if re.search(options.only, name)):
        for tool in options.tools:
            found = [in_a_child(name, tool, int(options.gigabytes * 1e9), options.folder) for _ in range(options.runs)]
            usages = [usage for usage in found if usage is not None]
            if not usages:
                lines += [f"{name}: {tool} failed"]
                continue
            least = min(usages, key=lambda usage: max(usage.anonymous.values(), default=0))
            print(row(name, tool, least), flush=True)
            if least.verdict not in ("checked", "unchecked"):
                lines += [f"{name}: {least.verdict}"]
            key = f"{name}, {options.gigabytes:g} GB, {tool}"
            rows[key] = kept_row(name, tool, options.gigabytes, least)
    print("\n".join(["", *lines, report("memory", {"memory": rows})]))
    if options.json:
        keep(options.json, {"memory": rows}, this_run((*PACKAGES, "onnx-ir")))


if __name__ == "__main__":
    main()
