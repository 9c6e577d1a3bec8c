"""The number stands in a part of a part of a part."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _ _"}
example = {"batch": 4}
others = [{"batch": 1}, {"batch": 2}, {"batch": 9}]


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(30, 30)

    def forward(self, values):
        flat = values.view(4, 30)  # error: [pinned-dim] batch
        return self.linear(flat).view_as(values)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Sequential(nn.ReLU(), Head())

    def forward(self, hidden):
        return self.head(hidden)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(), nn.Identity()])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 6, 5),)


class Right(Net):
    def forward(self, x):
        linear = self.blocks[0].head[1].linear
        return linear(x.relu().view(-1, 30)).view_as(x)


def right():
    torch.manual_seed(0)
    return Right().eval()
