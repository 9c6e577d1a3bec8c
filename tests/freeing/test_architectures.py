"""Small networks, exported statically by both of torch's exporters, freed, and compared with PyTorch at other sizes."""

import contextlib
import io
import warnings

import numpy as np
import onnx_ir as ir
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from .files import freed, run


class Attention(nn.Module):
    """Positions are looked up, heads are split, a buffer masks the future."""

    def __init__(self):
        super().__init__()
        self.embedding, self.positions = nn.Embedding(50, 16), nn.Embedding(64, 16)
        self.qkv = nn.Linear(16, 48)
        self.register_buffer("mask", torch.tril(torch.ones(64, 64)).bool())

    def forward(self, ids):
        b, t = ids.shape
        x = self.embedding(ids) + self.positions(torch.arange(t))
        q, k, v = (part.view(b, t, 4, 4).transpose(1, 2) for part in self.qkv(x).split(16, dim=2))
        scores = (q @ k.transpose(-2, -1)).masked_fill(~self.mask[:t, :t], float("-inf"))
        return (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, 16)


class Recurrent(nn.Module):
    """Initial states of its own, and only the last step."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(6, 8, 2, batch_first=True, bidirectional=True)

    def forward(self, x):
        state = torch.zeros(4, x.shape[0], 8)
        steps, _ = self.lstm(x, (state, state + 0.5))
        return steps, steps[:, -1]


class Windows(nn.Module):
    """The batch is merged with windows and taken apart again."""

    def __init__(self):
        super().__init__()
        self.inside = nn.Linear(4, 4)

    def forward(self, x):
        b, h, w, c = x.shape
        x = x.view(b, h // 2, 2, w // 2, 2, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, 4, c)
        x = self.inside(x).softmax(1)
        return x.view(b, h // 2, w // 2, 2, 2, c).permute(0, 1, 3, 2, 4, 5).reshape(b, h, w, c)


class Decay(nn.Module):
    """A token for the whole, a curve over the steps, a mean by the number of steps."""

    def __init__(self):
        super().__init__()
        self.token = nn.Parameter(torch.randn(1, 1, 8))

    def forward(self, x):
        b, t, _ = x.shape
        steps = torch.arange(t).float().view(1, t, 1)
        y = torch.cat([self.token.expand(b, -1, -1), x * steps], 1)
        return y, y[:, 1:].sum(1) / t


class Segmentation(nn.Module):
    """Down, up to the size of the picture, and beside it."""

    def __init__(self):
        super().__init__()
        self.down, self.out = nn.Conv2d(3, 4, 3, 2, 1), nn.Conv2d(7, 2, 1)

    def forward(self, x):
        up = F.interpolate(self.down(x), size=x.shape[-2:], mode="bilinear", align_corners=False)
        return self.out(torch.cat([x, up], 1))


CASES = {
    "attention": (Attention, lambda b, s: torch.randint(0, 50, (b, s)), "batch seq"),
    "recurrent": (Recurrent, lambda b, s: torch.randn(b, s, 6), "batch seq _"),
    "windows": (Windows, lambda b, s: torch.randn(b, 4, 4, 4), "batch _ _ _"),
    "decay": (Decay, lambda b, s: torch.randn(b, s, 8), "batch seq _"),
    "segmentation": (Segmentation, lambda b, s: torch.randn(b, 3, s, 2 * s), "batch _ height width"),
}


def exported(module, example, path, *, dynamo):
    options = {"dynamo": True, "external_data": False} if dynamo else {"dynamo": False}
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        torch.onnx.export(module, (example,), path, input_names=["x"], verbose=False, **options)
    return ir.load(path)


@pytest.mark.parametrize(("name", "dynamo"), [*((name, False) for name in CASES), ("recurrent", True), ("decay", True)])
def test_a_static_export_is_right_at_other_sizes(name, dynamo, tmp_path):
    torch.manual_seed(0)
    build, example, dims = CASES[name]
    module = build().eval()
    result = freed(exported(module, example(1, 16), tmp_path / "static.onnx", dynamo=dynamo), x=dims)
    for b, s in ((1, 16), (3, 16), (2, 11), (5, 1)):
        x = example(b, s)
        with torch.no_grad():
            expected = module(x)
        expected = expected if isinstance(expected, tuple) else (expected,)
        for got, wanted in zip(run(result.model, x.numpy()), expected, strict=True):
            np.testing.assert_allclose(got, wanted.numpy(), rtol=1e-4, atol=1e-5)
