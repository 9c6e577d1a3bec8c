"""`view(-1, 96)` is right as long as images are of one size."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _ _ _"}
example = {"batch": 2}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(96, 5)

    def forward(self, x):
        return self.linear(x.view(-1, 96))


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 1, 8, 12),)
