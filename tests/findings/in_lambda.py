"""The number stands in a lambda."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _ _"}
example = {"batch": 4}
others = [{"batch": 1}, {"batch": 2}, {"batch": 9}]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = [torch.relu, lambda value: value.view(4, 30)]  # error: [pinned-dim] batch

    def forward(self, x):
        for step in self.steps:
            x = step(x)
        return x


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 6, 5),)


class Right(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = [torch.relu, lambda value: value.view(value.shape[0], 30)]

    def forward(self, x):
        for step in self.steps:
            x = step(x)
        return x


def right():
    torch.manual_seed(0)
    return Right().eval()
