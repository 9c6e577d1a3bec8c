"""All rows of an embedding are added."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _"}
example = {"batch": 4, "seq": 7}
others = [{"batch": 1, "seq": 3}, {"batch": 5, "seq": 7}, {"batch": 2, "seq": 1}]
safe = False


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(7, 8)

    def forward(self, x):
        return x + self.table.weight  # error: [pinned-dim] seq


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8),)


class Right(Net):
    def forward(self, x):
        return x + self.table.weight[: x.shape[1]]


def right():
    torch.manual_seed(0)
    return Right().eval()
