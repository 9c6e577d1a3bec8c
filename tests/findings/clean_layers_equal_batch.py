"""A loop over three layers, with a batch of three."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _"}
example = {"batch": 3}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])

    def forward(self, x):
        for i in range(3):
            x = self.layers[i](x).relu()
        return x


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 8),)
