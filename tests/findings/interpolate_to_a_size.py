"""A pooled map is brought back to the example's resolution."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

dims = {"x": "_ _ height width"}
example = {"height": 8, "width": 12}
others = [{"height": 4, "width": 6}, {"height": 10, "width": 12}, {"height": 8, "width": 20}]


class Net(nn.Module):
    def forward(self, x):
        small = F.avg_pool2d(x, 2)
        large = F.interpolate(small, size=(8, 12))  # error: [pinned-dim] height, width
        return large + x


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(height, width):
    return (torch.randn(2, 3, height, width),)


class Right(Net):
    def forward(self, x):
        small = F.avg_pool2d(x, 2)
        large = F.interpolate(small, size=x.shape[2:])
        return large + x


def right():
    torch.manual_seed(0)
    return Right().eval()
