"""Batch is right, the length is not, in the same call."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _"}
example = {"batch": 4, "seq": 7}
others = [{"batch": 1, "seq": 3}, {"batch": 5, "seq": 7}, {"batch": 4, "seq": 11}, {"batch": 2, "seq": 14}]


class Net(nn.Module):
    def forward(self, x):
        zeros = torch.zeros(x.shape[0], 7, 2)  # error: [pinned-dim] seq
        return torch.cat([x, zeros], dim=-1)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8),)


class Right(Net):
    def forward(self, x):
        zeros = torch.zeros(x.shape[0], x.shape[1], 2)
        return torch.cat([x, zeros], dim=-1)


def right():
    torch.manual_seed(0)
    return Right().eval()
