"""A function is given the batch by its caller."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _ _"}
example = {"batch": 4}
others = [{"batch": 1}, {"batch": 2}, {"batch": 9}]


def fold(values, rows):
    return values.view(rows, 30)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(30, 5)

    def forward(self, x):
        x = x.tanh()
        flat = fold(x, 4)  # error: [pinned-dim] batch
        return self.linear(flat)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 6, 5),)


class Right(Net):
    def forward(self, x):
        x = x.tanh()
        flat = fold(x, x.shape[0])
        return self.linear(flat)


def right():
    torch.manual_seed(0)
    return Right().eval()
