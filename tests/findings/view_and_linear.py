"""The same with `view`, over three lines."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

dims = {"x": "batch _ height width"}
example = {"batch": 2, "height": 8, "width": 12}
others = [
    {"batch": 3, "height": 4, "width": 6},
    {"batch": 3, "height": 10, "width": 12},
    {"batch": 3, "height": 9, "width": 20},
]
safe = False


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 2, 3, padding=1)
        self.head = nn.Linear(2 * 8 * 12, 5)

    def forward(self, x):
        y = self.conv(x)
        y = y.view(y.size(0), -1)
        y = y.relu()
        return self.head(y)  # error: [pinned-dim] height, width


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, height, width):
    return (torch.randn(batch, 3, height, width),)


class Right(Net):
    def forward(self, x):
        y = self.conv(x)
        y = F.adaptive_avg_pool2d(y, (8, 12)).view(y.size(0), -1)
        y = y.relu()
        return self.head(y)


def right():
    torch.manual_seed(0)
    return Right().eval()
