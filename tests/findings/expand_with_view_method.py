"""A bound method of the class makes the mask."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _"}
example = {"batch": 4, "seq": 7}
edit = None


class Net(nn.Module):
    def forward(self, x):
        return x.masked_fill(self.mask(), 0.0)

    @staticmethod
    def mask():
        return torch.ones(7, 8, dtype=torch.bool).triu()  # error: [pinned-dim] seq


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8),)
