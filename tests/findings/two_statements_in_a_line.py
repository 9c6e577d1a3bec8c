"""Two statements stand in one line."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _ _"}
example = {"batch": 4}
others = [{"batch": 1}, {"batch": 2}, {"batch": 9}]


class Net(nn.Module):
    def forward(self, x):
        y = x * 2; z = y.view(4, 30)  # error: [pinned-dim] batch  # fmt: skip
        return z.softmax(-1)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 6, 5),)


class Right(Net):
    def forward(self, x):
        z = (x * 2).flatten(1)
        return z.softmax(-1)


def right():
    torch.manual_seed(0)
    return Right().eval()
