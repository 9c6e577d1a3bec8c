"""The size stands in a layer of PyTorch, made in `__init__`."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

dims = {"x": "_ _ height width"}
example = {"height": 8, "width": 12}
edit = None


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Upsample(size=(8, 12))

    def forward(self, x):
        return self.up(F.avg_pool2d(x, 2)) + x  # error: [pinned-dim] height, width


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(height, width):
    return (torch.randn(2, 3, height, width),)
