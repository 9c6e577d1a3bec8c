"""Both numbers and their product in one chain."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _"}
example = {"batch": 4, "seq": 7}
safe = False
others = [{"batch": 1, "seq": 3}, {"batch": 5, "seq": 7}, {"batch": 4, "seq": 11}, {"batch": 2, "seq": 14}]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(400, 8)

    def forward(self, x):
        index = torch.arange(28).view(4, 7)  # error: [pinned-dim] batch, seq
        return x + self.table(index)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8),)


class Right(Net):
    def forward(self, x):
        index = torch.arange(x.shape[0] * x.shape[1]).view(x.shape[0], -1)
        return x + self.table(index)


def right():
    torch.manual_seed(0)
    return Right().eval()
