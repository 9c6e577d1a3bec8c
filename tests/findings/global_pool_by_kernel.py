"""A kernel as large as the example's map, in front of a layer."""

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


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(3, 5)

    def forward(self, x):
        pooled = F.avg_pool2d(x.relu(), (8, 12))  # error: [pinned-dim] height, width
        return self.head(pooled.flatten(1))


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, height, width):
    return (torch.randn(batch, 3, height, width),)


class Right(Net):
    def forward(self, x):
        pooled = F.avg_pool2d(x.relu(), x.shape[2:])
        return self.head(pooled.flatten(1))


def right():
    torch.manual_seed(0)
    return Right().eval()
