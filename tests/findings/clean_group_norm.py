"""Four groups, with a batch of four."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _ seq"}
example = {"batch": 4, "seq": 7}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.GroupNorm(4, 8)

    def forward(self, x):
        return self.norm(x)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, 8, seq),)
