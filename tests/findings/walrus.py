"""The number gets its name inside of the call."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _ _"}
example = {"batch": 4}
others = [{"batch": 1}, {"batch": 2}, {"batch": 9}]


class Net(nn.Module):
    def forward(self, x):
        flat = x.view((rows := 4), 30)  # error: [pinned-dim] batch
        return flat.relu() * (rows > 0)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 6, 5),)


class Right(Net):
    def forward(self, x):
        flat = x.view(x.shape[0], 30)
        return flat.relu()


def right():
    torch.manual_seed(0)
    return Right().eval()
