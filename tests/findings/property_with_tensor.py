"""A property gives a tensor and sees no input: nothing to take the size from."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _"}
example = {"batch": 4, "seq": 7}
edit = None


class Net(nn.Module):
    @property
    def start(self):
        return torch.zeros(4, 1, 8)  # error: [pinned-dim] batch

    def forward(self, x):
        return torch.cat([self.start, x], dim=1)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8),)
