"""One line fails at other lengths, another is only wrong."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _"}
example = {"batch": 4, "seq": 7}
others = [{"batch": 1, "seq": 3}, {"batch": 5, "seq": 7}, {"batch": 4, "seq": 11}, {"batch": 2, "seq": 14}]


class Net(nn.Module):
    def forward(self, x):
        weighted = x * torch.ones(7, 1)  # error: [pinned-dim] seq
        return weighted.sum(1) / 7  # warning: [frozen-value] seq


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8),)


class Right(Net):
    def forward(self, x):
        weighted = x * 1
        return weighted.sum(1) / x.shape[1]


def right():
    torch.manual_seed(0)
    return Right().eval()
