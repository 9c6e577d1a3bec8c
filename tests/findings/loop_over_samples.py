"""A loop counts to the example's batch."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _"}
example = {"batch": 3}
others = [{"batch": 1}, {"batch": 2}, {"batch": 9}]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 3)

    def forward(self, x):
        rows = []
        for i in range(3):  # warning: [frozen-value] batch
            rows.append(self.linear(x[i]))
        return torch.stack(rows)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 8),)


class Right(Net):
    def forward(self, x):
        rows = []
        for i in range(x.shape[0]):
            rows.append(self.linear(x[i]))
        return torch.stack(rows)


def right():
    torch.manual_seed(0)
    return Right().eval()
