"""A mean over ten features, where the length is ten, too."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _"}
example = {"batch": 3, "seq": 10}


class Net(nn.Module):
    def forward(self, x):
        return x.sum(-1) / 10


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 10),)
