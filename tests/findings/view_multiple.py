"""The number is six times the batch, for each sample has six rows."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _ _"}
example = {"batch": 3}
others = [{"batch": 1}, {"batch": 2}, {"batch": 9}]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(5, 5)

    def forward(self, x):
        rows = x.reshape(18, 5)  # error: [pinned-dim] batch
        return self.linear(rows).view(-1, 6, 5).sum(1)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 6, 5),)


class Right(Net):
    def forward(self, x):
        rows = x.reshape(-1, 5)
        return self.linear(rows).view(-1, 6, 5).sum(1)


def right():
    torch.manual_seed(0)
    return Right().eval()
