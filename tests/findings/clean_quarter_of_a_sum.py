"""A weight of one quarter that has nothing to do with four samples."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _"}
example = {"batch": 4, "seq": 7}


class Net(nn.Module):
    def forward(self, x):
        return x.sum(1) / 4 + x.amax(1)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8),)
