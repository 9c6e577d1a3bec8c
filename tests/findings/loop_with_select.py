"""`select` reads each sample; the count is an attribute."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _"}
example = {"batch": 3}
others = [{"batch": 1}, {"batch": 2}, {"batch": 9}]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.count = 3

    def forward(self, x):
        return torch.cat([x.select(0, i).flip(0)[None] for i in range(self.count)])  # warning: [frozen-value] batch


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 8),)


class Right(Net):
    def forward(self, x):
        return torch.cat([x.select(0, i).flip(0)[None] for i in range(x.shape[0])])


def right():
    torch.manual_seed(0)
    return Right().eval()
