"""The number stands in a function of another file."""

from __future__ import annotations

import torch
from torch import nn

from tests.findings.parts.flattening import flattened

dims = {"x": "batch _ _"}
example = {"batch": 4}
others = [{"batch": 1}, {"batch": 2}, {"batch": 9}]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(30, 5)

    def forward(self, x):
        return self.linear(flattened(x))


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 6, 5),)


class Right(Net):
    def forward(self, x):
        return self.linear(x.flatten(1))


def right():
    torch.manual_seed(0)
    return Right().eval()
