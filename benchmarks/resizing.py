"""What exact resizing and norms cost: the time of a file by anyshape against torch's own file, in one run.

Torch's files take ONNX's Resize and InstanceNormalization, which round otherwise than PyTorch; here both run in turn in
one process, on one thread, and the 20 % quantile of a call's time counts.
Run: python benchmarks/resizing.py [--json [FILE]]
"""

from __future__ import annotations

import argparse
import contextlib
import io
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
import torch.nn.functional as F
from torch import nn

import anyshape
from figures import add_json_option, keep

CALLS = 30


class Resized(nn.Module):
    def __init__(self, function: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
        return self.function(x, like)


MODELS: dict[str, Callable[..., torch.Tensor]] = {
    "nearest, by 2": lambda x, like: F.interpolate(x, scale_factor=2.0) + like.sum(),
    "nearest, to a size": lambda x, like: F.interpolate(x, size=like.shape[-2:]),
    "bilinear, by 2": lambda x, like: F.interpolate(x, scale_factor=2.0, mode="bilinear") + like.sum(),
    "bilinear, to a size": lambda x, like: F.interpolate(x, size=like.shape[-2:], mode="bilinear"),
    "bicubic, to a size": lambda x, like: F.interpolate(x, size=like.shape[-2:], mode="bicubic"),
    "group norm": lambda x, like: F.group_norm(x, 4) + like.sum(),
    "instance norm": lambda x, like: F.instance_norm(x) + like.sum(),
    "variance of rows": lambda x, like: x.var(-1) + like.sum(),
}
SIZES = {"64 x 14 x 14 to 28": (64, 14, 28), "64 x 56 x 56 to 73": (64, 56, 73), "4 x 224 x 224 to 112": (4, 224, 112)}


def sessions(function: Callable[..., torch.Tensor], folder: Path) -> list[onnxruntime.InferenceSession]:
    """Ours and torch's, with height and width dynamic."""
    model, ours, theirs = Resized(function).eval(), folder / "ours.onnx", folder / "theirs.onnx"
    call = (torch.randn(1, 64, 14, 14), torch.randn(1, 20, 20))
    anyshape.export(model, call, ours, dims={"x": "1 c h w", "like": "1 p q"}, sizes={"c": [4, 64]}, quick=True)
    free = torch.export.Dim.DYNAMIC
    with contextlib.redirect_stdout(io.StringIO()):
        torch.onnx.export(
            model,
            call,
            theirs,
            dynamo=True,
            verbose=False,
            dynamic_shapes=({1: free, 2: free, 3: free}, {1: free, 2: free}),
        )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    return [onnxruntime.InferenceSession(path, options) for path in (ours, theirs)]


def ratio(both: list[onnxruntime.InferenceSession], feeds: dict[str, Any]) -> float:
    times: list[list[float]] = [[], []]
    for _ in range(CALLS):
        for index, session in enumerate(both):
            session.run(None, feeds)
            start = time.perf_counter()
            session.run(None, feeds)
            times[index].append(time.perf_counter() - start)
    ours, theirs = (float(np.quantile(one, 0.2)) for one in times)
    return ours / theirs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    add_json_option(parser, "resizing")
    given, rows = parser.parse_args(), {}
    torch.manual_seed(0)
    print("| model | " + " | ".join(SIZES) + " |")
    print("|---" * (len(SIZES) + 1) + "|")
    for name, function in MODELS.items():
        with tempfile.TemporaryDirectory() as folder:
            both = sessions(function, Path(folder))
            cells = {}
            for size, (channels, before, after) in SIZES.items():
                x, like = torch.randn(1, channels, before, before), torch.randn(1, after, after)
                cells[size] = round(ratio(both, {"x": x.numpy(), "like": like.numpy()}), 4)
        print(f"| {name} | " + " | ".join(f"{cell:.2f}" for cell in cells.values()) + " |", flush=True)
        rows[name] = cells
    if given.json:
        keep(given.json, {"operators": rows})


if __name__ == "__main__":
    main()
