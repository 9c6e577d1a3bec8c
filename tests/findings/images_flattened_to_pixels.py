"""`view(-1, 96)` makes two samples of a larger image."""

from __future__ import annotations

import torch
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
        self.linear = nn.Linear(96, 5)

    def forward(self, x):
        rows = x.view(-1, 96)  # warning: [mixed-batch] height, width
        return self.linear(rows)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, height, width):
    return (torch.randn(batch, 1, height, width),)


class Right(Net):
    def forward(self, x):
        rows = torch.nn.functional.adaptive_avg_pool2d(x, (8, 12)).view(-1, 96)
        return self.linear(rows)


def right():
    torch.manual_seed(0)
    return Right().eval()
