"""Zeros are stacked beside the input."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _"}
example = {"batch": 4}
others = [{"batch": 1}, {"batch": 2}, {"batch": 9}]


class Net(nn.Module):
    def forward(self, x):
        return torch.stack([x, torch.zeros(4, 8)], dim=1)  # error: [pinned-dim] batch


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 8),)


class Right(Net):
    def forward(self, x):
        return torch.stack([x, x.new_zeros(x.shape[0], 8)], dim=1)


def right():
    torch.manual_seed(0)
    return Right().eval()
