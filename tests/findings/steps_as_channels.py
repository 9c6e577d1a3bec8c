"""A convolution takes the steps as channels."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _"}
example = {"batch": 4, "seq": 7}
edit = None


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(7, 4, 3, padding=1)

    def forward(self, x):
        return self.conv(x)  # error: [pinned-dim] seq


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8),)
