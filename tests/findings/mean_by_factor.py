"""One seventh as a factor."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _"}
example = {"batch": 4, "seq": 7}
others = [{"batch": 1, "seq": 3}, {"batch": 5, "seq": 7}, {"batch": 4, "seq": 11}, {"batch": 2, "seq": 14}]


class Net(nn.Module):
    def forward(self, x):
        pooled = x.sum(1) * (1 / 7)  # warning: [frozen-value] seq
        return pooled * 2


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8),)


class Right(Net):
    def forward(self, x):
        pooled = x.mean(1)
        return pooled * 2


def right():
    torch.manual_seed(0)
    return Right().eval()
