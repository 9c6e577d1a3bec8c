"""Layers of PyTorch in a row hold the numbers."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _"}
example = {"batch": 4, "seq": 7}
edit = None


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(0, 1), nn.Linear(8, 8), nn.Unflatten(0, (4, 7)))

    def forward(self, x):
        return self.net(x) + x  # error: [pinned-dim] batch, seq


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8),)
