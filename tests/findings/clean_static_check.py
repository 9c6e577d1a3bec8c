"""A branch and an assertion on what does not vary."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _"}
example = {"batch": 2, "seq": 8}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x):
        assert x.shape[-1] == 8
        if x.dim() != 3:
            raise ValueError("three axes")
        return self.linear(x) if x.size(2) == 8 else x


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq):
    return (torch.randn(batch, seq, 8),)
