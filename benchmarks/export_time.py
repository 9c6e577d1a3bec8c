"""Export time: anyshape against torch.onnx.export, and against the trace alone, in one run and CPU time.

Conversion and verification are timed apart. Each model is exported by each, warm; the fastest run counts. Then the
first export of a process in which nothing but torch was imported, with all bytecode compiled before.
Run: python benchmarks/export_time.py [--runs N] [--only REGEX] [--json [FILE]]
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import onnxruntime
import torch
from torch import nn

import anyshape
from anyshape.stages import conclusion
from anyshape.verbs import export
from anyshape.verification import candidate_check, frozen_decisions
from figures import add_json_option, keep, this_run
from goals import report
from silence import silence


@dataclass(frozen=True)
class Subject:
    name: str
    build: Callable[[], nn.Module]
    args: tuple[Any, ...]
    dims: dict[str, str]


@dataclass(frozen=True)
class Row:
    """CPU seconds of one subject."""

    name: str
    trace: float
    torch: float
    whole: float
    check: float
    sizes: int
    forced_by: tuple[str, ...]

    @property
    def convert(self) -> float:
        return self.whole - self.check


# ---- models


class Encoder(nn.Module):
    def __init__(self, layers: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(100, 64)
        layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, tokens):
        return self.layers(self.embedding(tokens))


class Residual(nn.Module):
    """A basic block: two convolutions beside the image itself, or beside its projection where the shape changes."""

    def __init__(self, inside: int, channels: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Sequential(_convolution(inside, channels, 3, stride), nn.ReLU())
        self.second = _convolution(channels, channels, 3, 1)
        changes = stride != 1 or inside != channels
        self.beside = _convolution(inside, channels, 1, stride) if changes else nn.Identity()

    def forward(self, image):
        return torch.relu(self.beside(image) + self.second(self.first(image)))


def _convolution(inside: int, channels: int, kernel: int, stride: int) -> nn.Module:
    return nn.Sequential(nn.Conv2d(inside, channels, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(channels))


def residual_network(blocks: tuple[int, ...], channels: tuple[int, ...]) -> nn.Module:
    """Blocks of so many channels in each stage; (2, 2, 2, 2) and (64, 128, 256, 512) make a ResNet-18."""
    parts: list[nn.Module] = [_convolution(3, channels[0], 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    inside = channels[0]
    for stage, (count, width) in enumerate(zip(blocks, channels, strict=True)):
        for block in range(count):
            parts.append(Residual(inside, width, 2 if stage and not block else 1))
            inside = width
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, 1000))


_SMALL: dict[str, Any] = {
    "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 100, "use_cache": False,
}  # fmt: skip


def _bert() -> nn.Module:
    import transformers

    return transformers.BertModel(transformers.BertConfig(num_hidden_layers=4, **_SMALL))


def _llama() -> nn.Module:
    import transformers

    return transformers.LlamaForCausalLM(transformers.LlamaConfig(num_hidden_layers=2, **_SMALL))


class Written(nn.Module):
    """A write to a tensor of which a view is used again."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = Encoder(2)

    def forward(self, tokens):
        result = self.layers(tokens)
        first = result[:, 0]
        result.mul_(2.0)
        return result - first[:, None]


class Guarded(nn.Module):
    """A program inside of the program: what keeps its precision under autocast; or casts, and has to be taken apart."""

    def __init__(self, *, computes_in_less: bool) -> None:
        super().__init__()
        self.layers, self.last, self.computes_in_less = Encoder(2), nn.Linear(64, 64), computes_in_less

    def forward(self, tokens):
        result = self.layers(tokens)
        with torch.autocast("cpu", torch.bfloat16, enabled=self.computes_in_less):
            return self.last(result).float()


def subjects() -> list[Subject]:
    tokens, mask = torch.randint(0, 100, (2, 9)), torch.ones(2, 9, dtype=torch.long)
    image = torch.randn(2, 3, 40, 48)
    text, picture = {"tokens": "batch seq"}, {"input": "batch 3 height width"}
    masked = {"input_ids": "batch seq", "attention_mask": "batch seq"}
    return [
        Subject("linear", partial(nn.Linear, 10, 5), (torch.randn(3, 10),), {"input": "batch 10"}),
        Subject("encoder 2", partial(Encoder, 2), (tokens,), text),
        Subject("encoder 12", partial(Encoder, 12), (tokens,), text),
        Subject("encoder 48", partial(Encoder, 48), (tokens,), text),
        Subject("resnet18", partial(residual_network, (2, 2, 2, 2), (64, 128, 256, 512)), (image,), picture),
        Subject("residual 24", partial(residual_network, (24,), (32,)), (image,), picture),
        Subject("bert 4", _bert, (tokens, mask), masked),
        Subject("llama 2", _llama, (tokens, mask), masked),
        Subject("written views", Written, (tokens,), text),
        Subject("inner program", partial(Guarded, computes_in_less=False), (tokens,), text),
        Subject("inner autocast", partial(Guarded, computes_in_less=True), (tokens,), text),
    ]


# ---- measuring


def by_trace(subject: Subject, model: nn.Module) -> None:
    dynamic = tuple(_axes(text, torch.export.Dim.DYNAMIC) for text in subject.dims.values())
    with torch.no_grad():
        torch.export.export(model, subject.args, dynamic_shapes=dynamic, strict=False)


def by_torch(subject: Subject, model: nn.Module) -> None:
    names = {name: _axes(text) for name, text in subject.dims.items()}
    torch.onnx.export(model, subject.args, None, dynamo=True, dynamic_shapes=names, verbose=False)


def _axes(text: str, each: Any = None) -> dict[int, Any]:
    return {axis: each or name for axis, name in enumerate(text.split()) if name.isidentifier()}


CHECKING = (
    (export, "take_survey"), (candidate_check, "verify"), (candidate_check, "provoke"),
    (candidate_check, "run_contents"),
    (frozen_decisions, "read_values"), (conclusion, "doubts"),
)  # fmt: skip
"""The stages that run the model or the file, by the modules that call them: there a stopwatch takes their place."""


def by_anyshape(subject: Subject, model: nn.Module) -> tuple[anyshape.Result, float]:
    """The result, and the CPU seconds of all runs of the model and the file."""
    with contextlib.ExitStack() as stack:
        seconds = [stack.enter_context(stopwatch(*stage)) for stage in CHECKING]
        result = anyshape.export(model, subject.args, None, dims=subject.dims)
    return result, sum(map(sum, seconds))


@contextlib.contextmanager
def stopwatch(module: Any, name: str) -> Iterator[list[float]]:
    """The CPU seconds of each call of one stage."""
    stage, seconds = getattr(module, name), []

    @functools.wraps(stage)
    def timed(*args: Any, **kwargs: Any) -> Any:
        start = time.process_time()
        try:
            return stage(*args, **kwargs)
        finally:
            seconds.append(time.process_time() - start)

    setattr(module, name, timed)
    try:
        yield seconds
    finally:
        setattr(module, name, stage)


def cpu_seconds(run: Callable[[], Any]) -> tuple[float, Any]:
    with silence():
        start = time.process_time()
        result = run()
        return time.process_time() - start, result


def measure(subject: Subject, runs: int) -> Row:
    """Each in turn, so that a load on the machine weighs on all alike."""
    torch.manual_seed(0)
    model = subject.build().eval()
    traces, torches, ours = [], [], []
    for _ in range(runs):
        traces.append(cpu_seconds(partial(by_trace, subject, model))[0])
        torches.append(cpu_seconds(partial(by_torch, subject, model))[0])
        ours.append(cpu_seconds(partial(by_anyshape, subject, model)))
    whole, (result, check) = min(ours, key=lambda run: run[0])
    sizes = len(result.verification.sizes_run)
    return Row(subject.name, min(traces), min(torches), whole, check, sizes, result.attempts[-1].forced_by)


# ---- a new process

_TIMED = """
import sys, time, {first}
start = time.process_time()
{code}
sys.stderr.write(f"\\n{{time.process_time() - start}}")
"""
_LINEAR = "model, args = torch.nn.Linear(10, 5).eval(), (torch.randn(3, 10),)\n"
_COLD = {
    "torch": ("torch", _LINEAR + "torch.onnx.export(model, args, None, dynamo=True, dynamic_shapes=({0: 'batch'},))"),
    "anyshape": ("torch", _LINEAR + "import anyshape; anyshape.export(model, args, None, dims={'input': 'batch 10'})"),
    "import": ("sys", "import anyshape; assert 'torch' not in sys.modules"),
    "--help": (
        "sys",
        (
            "import anyshape.cli, contextlib\n"
            "with contextlib.suppress(SystemExit): anyshape.cli.program(['--help'])\n"
            "assert 'torch' not in sys.modules"
        ),
    ),
}
"""What a new process does: what it has imported before the clock starts, and what is timed."""


def cold(runs: int) -> dict[str, float]:
    """CPU seconds in new processes, the fastest of some."""
    seconds: dict[str, list[float]] = {name: [] for name in _COLD}
    for _ in range(runs + 1):
        for name, (first, code) in _COLD.items():
            seconds[name].append(_process_seconds(_TIMED.format(first=first, code=code)))
    return {name: min(each) for name, each in seconds.items()}


def _process_seconds(code: str) -> float:
    # with the bytecode of all sides kept, as it is of installed packages: pip has compiled torch already
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-W", "ignore", "-c", code]
    ran = subprocess.run(command, check=True, capture_output=True, text=True, env=kept)
    return float(ran.stderr.splitlines()[-1])


# ---- what is kept, and what is aimed at


def tables_of(rows: list[Row], seconds: dict[str, float]) -> dict[str, dict[str, dict[str, Any]]]:
    """Plain values by name."""
    exports = {
        row.name: {name: _rounded(value) for name, value in asdict(row).items() if name != "name"} for row in rows
    }
    return {"exports": exports, "new processes": {name: {"seconds": _rounded(one)} for name, one in seconds.items()}}


def _rounded(value: Any) -> Any:
    return round(value, 4) if isinstance(value, float) else value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--only", default="", help="subjects whose names this finds")
    add_json_option(parser, "export_time")
    given = parser.parse_args()
    torch.set_num_threads(1)
    versions = f"torch {torch.__version__}, onnxruntime {onnxruntime.__version__}, Python {platform.python_version()}"
    print(f"CPU seconds, warm, one thread, best of {given.runs}; {versions}")
    chosen = subjects()
    cpu_seconds(partial(measure, chosen[0], 1))
    print("model          trace   torch  convert   check   whole  convert/trace  convert/torch  whole/torch  sizes")
    rows = []
    for subject in chosen:
        if not re.search(given.only, subject.name):
            continue
        rows.append(row := measure(subject, given.runs))
        print(
            f"{row.name:<13} {row.trace:>6.2f} {row.torch:>7.2f} {row.convert:>8.2f} {row.check:>7.2f} "
            f"{row.whole:>7.2f} {row.convert / row.trace:>14.2f} {row.convert / row.torch:>14.2f} "
            f"{row.whole / row.torch:>12.2f} {row.sizes:>6}" + ("  taken apart" if row.forced_by else ""),
            flush=True,
        )
    tables = tables_of(rows, {} if given.only else cold(given.runs))
    print()
    print(report("export_time", tables))
    if given.json:
        run = this_run()
        keep(given.json, tables, {**run, "machine": f"{run['machine']}, best of {given.runs}"})


if __name__ == "__main__":
    main()
