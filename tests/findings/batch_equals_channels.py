"""Batch and channels are both 3: only trying tells which of them is meant."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _ _ _"}
example = {"batch": 3}
others = [{"batch": 1}, {"batch": 2}, {"batch": 9}]


class Net(nn.Module):
    def forward(self, x):
        rows = x.view(3, 3, 16)  # error: [pinned-dim] batch
        return rows.mean(dim=2) - rows[:, :, 0]


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 3, 4, 4),)


class Right(Net):
    def forward(self, x):
        rows = x.view(x.shape[0], 3, 16)
        return rows.mean(dim=2) - rows[:, :, 0]


def right():
    torch.manual_seed(0)
    return Right().eval()
