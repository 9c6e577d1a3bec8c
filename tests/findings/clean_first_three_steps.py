"""The first three steps of at least three: a limit of the model's own."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _"}
example = {"batch": 4, "seq": 7}


class Net(nn.Module):
    def forward(self, x):
        return sum(x[:, i] * (i + 1) for i in range(3))


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8),)
