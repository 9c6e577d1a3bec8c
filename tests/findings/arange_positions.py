"""Positions are counted to a number."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _"}
example = {"batch": 4, "seq": 7}
others = [{"batch": 1, "seq": 3}, {"batch": 5, "seq": 7}, {"batch": 4, "seq": 11}, {"batch": 2, "seq": 14}]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(32, 8)

    def forward(self, x):
        positions = torch.arange(7)  # error: [pinned-dim] seq
        return x + self.table(positions)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8),)


class Right(Net):
    def forward(self, x):
        positions = torch.arange(x.shape[1])
        return x + self.table(positions)


def right():
    torch.manual_seed(0)
    return Right().eval()
