"""The batch is a constant of the class."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _ _"}
example = {"batch": 4}
others = [{"batch": 1}, {"batch": 2}, {"batch": 9}]


class Net(nn.Module):
    ROWS = 4

    def forward(self, x):
        return x.view(self.ROWS, 30).cumsum(1)  # error: [pinned-dim] batch


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 6, 5),)


class Right(Net):
    def forward(self, x):
        return x.view(x.shape[0], 30).cumsum(1)


def right():
    torch.manual_seed(0)
    return Right().eval()
