"""A stride and a kernel that equal batch and length."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _ seq"}
example = {"batch": 2, "seq": 7}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(8, 3, 7, stride=2, padding=3)

    def forward(self, x):
        return self.conv(x)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, 8, seq),)
