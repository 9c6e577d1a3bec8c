"""A column of halves is put in front."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _"}
example = {"batch": 4}
others = [{"batch": 1}, {"batch": 2}, {"batch": 9}]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(5, 2)

    def forward(self, x):
        ones = torch.full((4, 1), 0.5)  # error: [pinned-dim] batch
        return self.linear(torch.cat([ones, x], dim=1))


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 4),)


class Right(Net):
    def forward(self, x):
        ones = torch.full((x.shape[0], 1), 0.5)
        return self.linear(torch.cat([ones, x], dim=1))


def right():
    torch.manual_seed(0)
    return Right().eval()
