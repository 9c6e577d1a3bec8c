"""Features are split into fours, with a batch of four."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _"}
example = {"batch": 4, "seq": 7}


class Net(nn.Module):
    def forward(self, x):
        first, second = x.split(4, dim=-1)
        return first * second.chunk(4, dim=-1)[0]


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8),)
