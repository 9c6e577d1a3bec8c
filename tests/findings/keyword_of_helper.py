"""A function is given the batch as a keyword, through another function."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _ _"}
example = {"batch": 4}
others = [{"batch": 1}, {"batch": 2}, {"batch": 9}]


def inner(values, count):
    return values.reshape(count, 30)


def outer(values, *, rows):
    return inner(values, rows).relu()


class Net(nn.Module):
    def forward(self, x):
        return outer(x, rows=4) + 1  # error: [pinned-dim] batch


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 6, 5),)


class Right(Net):
    def forward(self, x):
        return outer(x, rows=x.shape[0]) + 1


def right():
    torch.manual_seed(0)
    return Right().eval()
