"""A map is flattened in front of a layer that was made for its resolution."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

dims = {"x": "_ _ height width"}
example = {"height": 8, "width": 12}
others = [{"height": 4, "width": 6}, {"height": 10, "width": 12}, {"height": 9, "width": 20}]
safe = False


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 2, 3, padding=1)
        self.head = nn.Linear(2 * 8 * 12, 5)

    def forward(self, x):
        features = self.conv(x).relu()
        return self.head(torch.flatten(features, 1))  # error: [pinned-dim] height, width


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(height, width):
    return (torch.randn(2, 3, height, width),)


class Right(Net):
    def forward(self, x):
        features = self.conv(x).relu()
        return self.head(torch.flatten(F.adaptive_avg_pool2d(features, (8, 12)), 1))


def right():
    torch.manual_seed(0)
    return Right().eval()
