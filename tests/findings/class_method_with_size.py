"""A static method is given the number."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _"}
example = {"batch": 4, "seq": 7}
others = [{"batch": 1, "seq": 3}, {"batch": 5, "seq": 7}, {"batch": 4, "seq": 11}, {"batch": 2, "seq": 14}]


class Net(nn.Module):
    def forward(self, x):
        return x.masked_fill(self.mask(7, x.shape[2]), 0.0)  # error: [pinned-dim] seq

    @staticmethod
    def mask(rows, columns):
        return torch.ones(rows, columns, dtype=torch.bool).triu()


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8),)


class Right(Net):
    def forward(self, x):
        return x.masked_fill(self.mask(x.shape[1], x.shape[2]), 0.0)


def right():
    torch.manual_seed(0)
    return Right().eval()
