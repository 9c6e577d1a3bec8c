"""A sum over two axes is divided by their product."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _ height width"}
example = {"batch": 2, "height": 8, "width": 12}
others = [
    {"batch": 3, "height": 4, "width": 6},
    {"batch": 3, "height": 10, "width": 12},
    {"batch": 3, "height": 9, "width": 20},
]


class Net(nn.Module):
    def forward(self, x):
        return x.sum(dim=(2, 3)) / 96  # warning: [frozen-value] height, width


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, height, width):
    return (torch.randn(batch, 3, height, width),)


class Right(Net):
    def forward(self, x):
        return x.mean(dim=(2, 3))


def right():
    torch.manual_seed(0)
    return Right().eval()
