"""Three results are averaged, with a batch of three."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _"}
example = {"batch": 3}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.models = nn.ModuleList([nn.Linear(8, 2) for _ in range(3)])

    def forward(self, x):
        total = sum(model(x) for model in self.models)
        return total / 3


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 8),)
