"""`F.upsample` with one number for both axes of a square example."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

dims = {"x": "_ _ height width"}
example = {"height": 8, "width": 8}
others = [{"height": 4, "width": 6}, {"height": 10, "width": 12}, {"height": 8, "width": 20}]


class Net(nn.Module):
    def forward(self, x):
        small = F.max_pool2d(x, 2)
        return torch.cat([F.upsample(small, (8, 8)), x], dim=1)  # error: [pinned-dim] height, width


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(height, width):
    return (torch.randn(2, 3, height, width),)


class Right(Net):
    def forward(self, x):
        small = F.max_pool2d(x, 2)
        return torch.cat([F.upsample(small, x.shape[2:]), x], dim=1)


def right():
    torch.manual_seed(0)
    return Right().eval()
