"""A chain over several lines is named where the number stands."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _ _"}
example = {"batch": 4}
others = [{"batch": 1}, {"batch": 2}, {"batch": 9}]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(30, 5)

    def forward(self, x):
        flat = (
            x.relu()
            .clone()
            .view(4, 30)  # error: [pinned-dim] batch
            .contiguous()
        )
        return self.linear(flat)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 6, 5),)


class Right(Net):
    def forward(self, x):
        flat = x.relu().clone().view(-1, 30).contiguous()
        return self.linear(flat)


def right():
    torch.manual_seed(0)
    return Right().eval()
