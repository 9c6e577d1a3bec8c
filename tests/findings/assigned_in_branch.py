"""A name has its number from a branch."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _ _"}
example = {"batch": 4}
others = [{"batch": 1}, {"batch": 2}, {"batch": 9}]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.small = True

    def forward(self, x):
        count = 16
        if self.small:
            count = 4
        return x.view(count, 30).relu()  # error: [pinned-dim] batch


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 6, 5),)


class Right(Net):
    def forward(self, x):
        return x.view(-1, 30).relu()


def right():
    torch.manual_seed(0)
    return Right().eval()
