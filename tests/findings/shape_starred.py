"""The rest of the shape is taken from the input."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _ _"}
example = {"batch": 4}
others = [{"batch": 1}, {"batch": 2}, {"batch": 9}]


class Net(nn.Module):
    def forward(self, x):
        first, rest = x[:, :1], x.shape[2:]
        return first.expand(4, 6, *rest) + x  # error: [pinned-dim] batch


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 6, 5),)


class Right(Net):
    def forward(self, x):
        first, rest = x[:, :1], x.shape[2:]
        return first.expand(x.shape[0], 6, *rest) + x


def right():
    torch.manual_seed(0)
    return Right().eval()
