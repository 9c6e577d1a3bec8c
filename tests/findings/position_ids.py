"""Positions are counted, then repeated for the batch: two numbers in one chain."""

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
        positions = torch.arange(0, 7).unsqueeze(0).repeat(4, 1)  # error: [pinned-dim] batch # error: [pinned-dim] seq
        return x + self.table(positions)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8),)


class Right(Net):
    def forward(self, x):
        positions = torch.arange(0, x.shape[1]).unsqueeze(0).repeat(x.shape[0], 1)
        return x + self.table(positions)


def right():
    torch.manual_seed(0)
    return Right().eval()
