"""The class is made in a function, whose names it uses."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _ _"}
example = {"batch": 4}
others = [{"batch": 1}, {"batch": 2}, {"batch": 9}]


def made(factor):
    class Inner(nn.Module):
        def forward(self, values):
            return values.view(4, 30) * factor  # error: [pinned-dim] batch

    return Inner()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = made(3.0)

    def forward(self, x):
        return self.inner(x)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 6, 5),)


class Right(Net):
    def forward(self, x):
        return x.flatten(1) * 3.0


def right():
    torch.manual_seed(0)
    return Right().eval()
