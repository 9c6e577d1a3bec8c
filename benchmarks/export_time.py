"""Export time: anyshape against torch.onnx.export on six models of growing size, in one run and CPU time.

Conversion and verification are timed apart. Each model is exported twice by each, warm; the faster run counts.
Run: python benchmarks/export_time.py [--runs N]
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import platform
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import onnxruntime
import torch
from torch import nn

import anyshape


@dataclass(frozen=True)
class Subject:
    name: str
    model: nn.Module
    args: tuple[Any, ...]
    dims: dict[str, str]


class Encoder(nn.Module):
    def __init__(self, layers: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(100, 64)
        layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, tokens):
        return self.layers(self.embedding(tokens))


class Residual(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(channels, channels, 3, 1, 1), nn.BatchNorm2d(channels), nn.ReLU())
        self.second = nn.Sequential(nn.Conv2d(channels, channels, 3, 1, 1), nn.BatchNorm2d(channels))

    def forward(self, image):
        return torch.relu(image + self.second(self.first(image)))


def residual_network(blocks: int) -> nn.Module:
    stem = nn.Sequential(nn.Conv2d(3, 32, 7, 2, 3), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
    body = [Residual(32) for _ in range(blocks)]
    return nn.Sequential(stem, *body, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))


def subjects() -> list[Subject]:
    torch.manual_seed(0)
    tokens, image = torch.randint(0, 100, (2, 9)), torch.randn(2, 3, 40, 48)
    text = {"tokens": "batch seq"}
    picture = {"input": "batch 3 height width"}
    found = [
        Subject("linear", nn.Linear(10, 5), (torch.randn(3, 10),), {"input": "batch 10"}),
        Subject("encoder 2", Encoder(2), (tokens,), text),
        Subject("residual 8", residual_network(8), (image,), picture),
        Subject("encoder 6", Encoder(6), (tokens,), text),
        Subject("residual 24", residual_network(24), (image,), picture),
        Subject("encoder 12", Encoder(12), (tokens,), text),
    ]
    for subject in found:
        subject.model.eval()
    return found


def by_torch(subject: Subject) -> None:
    names = {k: {i: n for i, n in enumerate(v.split()) if n.isidentifier()} for k, v in subject.dims.items()}
    torch.onnx.export(subject.model, subject.args, None, dynamo=True, dynamic_shapes=names, verbose=False)


def by_anyshape(subject: Subject) -> anyshape.Result:
    return anyshape.export(subject.model, subject.args, None, dims=subject.dims)


def cpu_seconds(run: Callable[[], Any]) -> tuple[float, Any]:
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        start = time.process_time()
        result = run()
        return time.process_time() - start, result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2)
    runs = parser.parse_args().runs
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    versions = f"torch {torch.__version__}, onnxruntime {onnxruntime.__version__}, Python {platform.python_version()}"
    print(f"CPU seconds, warm, one thread, best of {runs}; {versions}")
    rows = subjects()
    cpu_seconds(partial(by_torch, rows[0]))
    cpu_seconds(partial(by_anyshape, rows[0]))
    print("model          torch  convert   check   whole  convert/torch  whole/torch  sizes")
    for subject in rows:
        torch_seconds = min(cpu_seconds(partial(by_torch, subject))[0] for _ in range(runs))
        whole, result = min((cpu_seconds(partial(by_anyshape, subject)) for _ in range(runs)), key=lambda row: row[0])
        check = min(result.verification.seconds, whole)
        convert = whole - check
        print(
            f"{subject.name:<12} {torch_seconds:>7.2f} {convert:>8.2f} {check:>7.2f} {whole:>7.2f} "
            f"{convert / torch_seconds:>14.2f} {whole / torch_seconds:>12.2f} {len(result.verification.sizes_run):>6}"
        )


if __name__ == "__main__":
    main()
