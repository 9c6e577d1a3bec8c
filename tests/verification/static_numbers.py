"""Models that compute with a size, whose static files hold a number instead; and what each number is."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn


class Computed(nn.Module):
    """A function of one input, behind a layer where features are mixed."""

    def __init__(self, function, *layers):
        super().__init__()
        self.function, self.layers = function, nn.ModuleList(layers)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.function(x)


def steps(x):
    return torch.arange(x.shape[1])[None, :, None]


FLAT, STEPS, PICTURE = (4, 8), (3, 16, 8), (2, 3, 8, 12)
DIMS = {FLAT: "batch 8", STEPS: "batch seq 8", PICTURE: "batch 3 h w", (2, 8): "batch 8"}

NUMBERS = {
    "share": (lambda x: x / x.shape[0], FLAT, "batch"),
    "share of two": (lambda x: x / x.shape[0], (2, 8), "batch"),
    "times": (lambda x: x * (1 / x.shape[0]), FLAT, "1/batch"),
    "root": (lambda x: x * math.sqrt(x.shape[1]), STEPS, "sqrt(seq)"),
    "logarithm": (lambda x: x / math.log(x.shape[1]), STEPS, "log(seq)"),
    "running share": (lambda x: x.cumsum(1) / x.shape[1], STEPS, "seq"),
    "one less": (lambda x: x / (x.shape[1] - 1), STEPS, "seq - 1"),
    "two dims": (lambda x: x / (x.shape[0] * x.shape[1]), STEPS, "batch*seq"),
    "exponent": (lambda x: x.abs() ** (1 / x.shape[0]), FLAT, "1/batch"),
    "bound": (lambda x: x.clamp(max=1 / x.shape[1]), STEPS, "1/seq"),
    "half precision": (lambda x: x.half() / x.shape[0], FLAT, "batch"),
    "double precision": (lambda x: x.double() / x.shape[0], FLAT, "batch"),
    "many alike": (lambda x: x * (torch.ones(8) / x.shape[0]), FLAT, "1/batch"),
    "scores": (lambda x: (x @ x.transpose(1, 2) / math.sqrt(x.shape[1])).softmax(-1) @ x, STEPS, "sqrt(seq)"),
    "linspace": (lambda x: x + torch.linspace(0, 1, x.shape[1])[None, :, None], STEPS, "range(seq)/max(seq - 1, 1)"),
    "grid": (lambda x: x * torch.linspace(-1, 1, x.shape[3]), PICTURE, "-1 + 2*range(w)/max(w - 1, 1)"),
    "ramp": (lambda x: x * (steps(x) / x.shape[1]), STEPS, "range(seq)/seq"),
    "middles": (lambda x: x * ((steps(x) + 0.5) / x.shape[1]), STEPS, "(range(seq) + 0.5)/seq"),
    "window": (lambda x: x * torch.hann_window(x.shape[1])[None, :, None], STEPS, "seq"),
    "later steps": (lambda x: x + (steps(x) + x.shape[1]), STEPS, "seq + range(seq)"),
    "classes": (lambda x: F.one_hot(x.argmax(2), x.shape[1]).float(), STEPS, "seq"),
    "picture": (lambda x: F.conv2d(x, torch.ones(3, 3, 3, 3), padding=1) / (x.shape[2] * x.shape[3]), PICTURE, "h*w"),
}
"""Name -> the function, the shape of its input in the static file, and what the number is."""

EXPLAINED = {
    "gelu": (F.gelu, (2, 8)),
    "gelu by tanh": (lambda x: F.gelu(x, approximate="tanh"), (2, 8)),
    "hard swish": (F.hardswish, (6, 8)),
    "attention": (lambda x: F.scaled_dot_product_attention(*[x[:, None]] * 3)[:, 0], (64, 4, 8)),
    "layer norm": (lambda x: F.layer_norm(x, (8,)), (2, 8)),
    "share of the features": (lambda x: x.sum(1) / x.shape[1], (8, 8)),
    "square": (lambda x: (x**2).mean(1), (2, 8)),
    "hidden by a norm": (lambda x: F.normalize(x / 4, dim=1), FLAT),
    "another number": (lambda x: x * 0.7 + 11, FLAT),
}
"""Right files with numbers that look like sizes."""


def example(shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))
