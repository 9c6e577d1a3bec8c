"""Static files for `make_dynamic`: some hold a number that was computed from a size, others none.

The first are right at their own size alone, if nobody says what the number is; a tool that frees them without a word is
wrong. Those without such a number are to be freed.
"""

from __future__ import annotations

import itertools
import math
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import anyshape
from anyshape.errors import AnyshapeError
from silence import silence
from trust_truth import session_of

RIGHT, REFUSED, NOTED_WRONG, FREED_WRONG = "freed, right", "refused", "freed, wrong with a note", "freed, WRONG"


@dataclass(frozen=True)
class Static:
    """A model that is exported at one size, and what is to be freed."""

    name: str
    forward: Callable[[torch.Tensor], torch.Tensor]
    shape: tuple[int, ...]
    dims: str
    """`batch seq _`, in the order of the axes."""
    is_suspect: bool = True
    """Whether the file holds a number that came from a size."""


class Called(nn.Module):
    """A function with a few weights of its own."""

    def __init__(self, forward) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.linear, self.conv = nn.Linear(8, 8), nn.Conv2d(3, 4, 3, padding=1)
        self.function = forward

    def forward(self, x):
        return self.function(self, x)


SEQUENCE, IMAGE = (3, 10, 8), (2, 3, 9, 11)

STATIC: tuple[Static, ...] = (
    Static("divided by the batch", lambda m, x: m.linear(x) / x.shape[0], SEQUENCE, "batch _ _"),
    Static("times the root of the length", lambda m, x: m.linear(x) * math.sqrt(x.shape[1]), SEQUENCE, "_ seq _"),
    Static("divided by its root", lambda m, x: m.linear(x) / x.shape[1] ** 0.5, SEQUENCE, "batch seq _"),
    Static("running mean", lambda m, x: m.linear(x).cumsum(1) / x.shape[1], SEQUENCE, "_ seq _"),
    Static("ramp", lambda m, x: m.linear(x) + torch.linspace(0, 1, x.shape[1])[:, None], SEQUENCE, "_ seq _"),
    Static("places", lambda m, x: m.linear(x) + torch.arange(x.shape[1])[:, None] / 100, SEQUENCE, "_ seq _"),
    Static("area", lambda m, x: m.conv(x) / (x.shape[2] * x.shape[3]), IMAGE, "_ _ height width"),
    Static("one less", lambda m, x: m.linear(x) * (x.shape[1] - 1), SEQUENCE, "_ seq _"),
    Static("square", lambda m, x: m.linear(x) + 1 / x.shape[1] ** 2, SEQUENCE, "_ seq _"),
    Static("logarithm", lambda m, x: m.linear(x) * math.log(x.shape[1]), SEQUENCE, "_ seq _"),
    Static("all elements", lambda m, x: m.linear(x).sum() / x.numel() + x, SEQUENCE, "batch _ _"),
    Static("branch on the batch", lambda m, x: m.linear(x) * (2 if x.shape[0] > 2 else 3), SEQUENCE, "batch _ _"),
    Static("branch on the length", lambda m, x: m.linear(x) if x.shape[1] > 8 else -x, SEQUENCE, "_ seq _"),
    Static("half of the steps", lambda m, x: m.linear(x)[:, : x.shape[1] // 2].sum(1), SEQUENCE, "_ seq _"),
    Static("last step by its number", lambda m, x: m.linear(x)[:, x.shape[1] - 1], SEQUENCE, "_ seq _"),
    Static("parity", lambda m, x: m.linear(x) * (x.shape[1] % 2 + 1), SEQUENCE, "_ seq _"),
    Static("layer", lambda m, x: m.linear(x), SEQUENCE, "batch _ _", is_suspect=False),
    Static("layer over steps", lambda m, x: m.linear(x).relu(), SEQUENCE, "batch seq _", is_suspect=False),
    Static("convolution", lambda m, x: m.conv(x).relu(), IMAGE, "batch _ height width", is_suspect=False),
    Static("flattened", lambda m, x: m.linear(x).reshape(x.shape[0], -1), SEQUENCE, "batch _ _", is_suspect=False),
    Static("pooled", lambda m, x: F.max_pool2d(m.conv(x), 2), IMAGE, "batch _ _ _", is_suspect=False),
    Static("softmax of rows", lambda m, x: m.linear(x).softmax(-1), SEQUENCE, "batch _ _", is_suspect=False),
    Static("mean of the image", lambda m, x: m.conv(x).mean((2, 3)), IMAGE, "batch _ _ _", is_suspect=False),
    Static("residual", lambda m, x: x + m.linear(x.tanh()), SEQUENCE, "batch seq _", is_suspect=False),
)


@dataclass(frozen=True)
class Freed:
    """What became of one static file."""

    name: str
    is_suspect: bool
    outcome: str
    why: str
    seconds: float


def freed(static: Static) -> Freed:
    """The static file given to `make_dynamic`, and what comes out run at other sizes."""
    module = Called(static.forward).eval()
    generator = torch.Generator().manual_seed(0)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder) / "static.onnx", Path(folder) / "free.onnx"
        with silence():
            torch.onnx.export(module, (torch.randn(static.shape, generator=generator),), str(path), dynamo=True)
            name = session_of(path).get_inputs()[0].name
            try:
                result = anyshape.make_dynamic(path, {name: static.dims}, out=out)
            except AnyshapeError as error:
                findings = getattr(error, "findings", ())
                said = findings[0].headline if findings else str(error)
                return Freed(static.name, static.is_suspect, REFUSED, said, time.monotonic() - started)
        wrong = _wrong_at(static, module, out, result)
    outcome, why = (FREED_WRONG, f"{result.verdict}, {wrong}") if wrong else (RIGHT, result.verdict)
    told = (*result.notes, *(finding.headline for finding in result.findings))
    if wrong and told:
        outcome, why = NOTED_WRONG, f"{why}; {told[0]}"
    return Freed(static.name, static.is_suspect, outcome, why, time.monotonic() - started)


def _wrong_at(static: Static, module: nn.Module, path: Path, result: anyshape.Result) -> str:
    """The first size of those that it serves at which the freed file differs from the model, in words."""
    session = session_of(path)
    generator = torch.Generator().manual_seed(1)
    axes = []
    for size, dim in zip(static.shape, static.dims.split(), strict=True):
        others = () if dim == "_" else (1, 2, size - 1, size + 1, size + 6, 2 * size)
        axes.append([size, *(one for one in others if one in result.dims[dim])])
    for shape in itertools.product(*axes):
        x = torch.randn(shape, generator=generator)
        with torch.no_grad():
            want = module(x).numpy()
        try:
            (got,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
        except Exception as error:
            return f"fails at {shape}: {str(error).splitlines()[0][:80]}"
        if got.shape != want.shape or not np.allclose(got, want, rtol=1e-3, atol=1e-4):
            return f"wrong at {shape}"
    return ""
