"""A loss is divided by the number of all values of the example."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _"}
example = {"batch": 4}
others = [{"batch": 1}, {"batch": 2}, {"batch": 9}]


class Net(nn.Module):
    def forward(self, x):
        return x.square().sum() / 24  # warning: [frozen-value] batch


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 6),)


class Right(Net):
    def forward(self, x):
        return x.square().sum() / x.numel()


def right():
    torch.manual_seed(0)
    return Right().eval()
