"""Rows are written into a table of fixed size."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _"}
example = {"batch": 4}
others = [{"batch": 1}, {"batch": 2}, {"batch": 9}]


class Net(nn.Module):
    def forward(self, x):
        out = torch.zeros(4, 8)  # error: [pinned-dim] batch
        out[:, :5] = x
        return out


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 5),)


class Right(Net):
    def forward(self, x):
        out = x.new_zeros(x.shape[0], 8)
        out[:, :5] = x
        return out


def right():
    torch.manual_seed(0)
    return Right().eval()
