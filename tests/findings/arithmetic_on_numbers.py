"""The number is computed from numbers."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _ _"}
example = {"batch": 4}
others = [{"batch": 1}, {"batch": 2}, {"batch": 9}]


class Net(nn.Module):
    def forward(self, x):
        rows = x.view(2 * 2 * 6, 5)  # error: [pinned-dim] batch
        return rows.cumsum(1).view_as(x)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 6, 5),)


class Right(Net):
    def forward(self, x):
        rows = x.view(-1, 5)
        return rows.cumsum(1).view_as(x)


def right():
    torch.manual_seed(0)
    return Right().eval()
