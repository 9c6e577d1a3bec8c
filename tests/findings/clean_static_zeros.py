"""A table of numbers along static axes alone, as large as the batch."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _ _"}
example = {"batch": 4}


class Net(nn.Module):
    def forward(self, x):
        return x + torch.arange(4.0).view(4, 1) + torch.ones(4, 5)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch):
    return (torch.randn(batch, 4, 5),)
