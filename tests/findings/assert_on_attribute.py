"""An assertion compares with an attribute."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch _ height _"}
example = {"batch": 2, "height": 8}
others = [{"batch": 3, "height": 12}, {"batch": 1, "height": 4}]
safe = False


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.image_size = 8
        self.conv = nn.Conv2d(3, 2, 4, 4)

    def forward(self, x):
        _, _, height, _ = x.shape
        assert height == self.image_size  # error: [pinned-dim] height
        return self.conv(x).flatten(2)


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, height):
    return (torch.randn(batch, 3, height, 8),)


class Right(Net):
    def forward(self, x):
        return self.conv(x).flatten(2)


def right():
    torch.manual_seed(0)
    return Right().eval()
