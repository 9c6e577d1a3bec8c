"""The batch is an attribute, set in `__init__`."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _ _"}
example = {"batch": 4}
others = [{"batch": 1}, {"batch": 2}, {"batch": 9}]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.batch = 4
        self.linear = nn.Linear(30, 5)

    def forward(self, x):
        flat = x.reshape(self.batch, 30)  # error: [pinned-dim] batch
        return self.linear(flat)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 6, 5),)


class Right(Net):
    def forward(self, x):
        flat = x.reshape(x.shape[0], 30)
        return self.linear(flat)


def right():
    torch.manual_seed(0)
    return Right().eval()
