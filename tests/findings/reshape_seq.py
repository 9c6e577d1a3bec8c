"""Only the length is a number, the batch comes from the input."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _"}
example = {"batch": 4, "seq": 7}
others = [{"batch": 1, "seq": 3}, {"batch": 5, "seq": 7}, {"batch": 4, "seq": 11}, {"batch": 2, "seq": 14}]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x):
        x = self.linear(x)
        heads = x.reshape(x.size(0), 7, 2, 4)  # error: [pinned-dim] seq
        return heads.transpose(1, 2)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8),)


class Right(Net):
    def forward(self, x):
        x = self.linear(x)
        heads = x.reshape(x.size(0), x.size(1), 2, 4)
        return heads.transpose(1, 2)


def right():
    torch.manual_seed(0)
    return Right().eval()
