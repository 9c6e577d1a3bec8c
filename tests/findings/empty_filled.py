"""`empty` and `fill_` in one chain."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _"}
example = {"batch": 3}
others = [{"batch": 1}, {"batch": 2}, {"batch": 9}]


class Net(nn.Module):
    def forward(self, x):
        bias = torch.empty(3, 6).fill_(2.0)  # error: [pinned-dim] batch
        return x * bias


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 6),)


class Right(Net):
    def forward(self, x):
        bias = torch.empty(x.shape[0], 6).fill_(2.0)
        return x * bias


def right():
    torch.manual_seed(0)
    return Right().eval()
