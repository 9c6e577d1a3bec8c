"""A layer mixes steps, as in an MLP-Mixer."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _"}
example = {"batch": 4, "seq": 7}
edit = None


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(7, 7)

    def forward(self, x):
        return x + self.mix(x.transpose(1, 2)).transpose(1, 2)  # error: [pinned-dim] seq


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8),)
