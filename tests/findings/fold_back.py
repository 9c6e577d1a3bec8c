"""Patches are folded back to the example's resolution."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

dims = {"x": "_ _ height width"}
example = {"height": 8, "width": 12}
others = [{"height": 4, "width": 6}]


class Net(nn.Module):
    def forward(self, x):
        patches = F.unfold(x, 2, stride=2)
        return F.fold(patches, (8, 12), 2, stride=2) - x  # error: [pinned-dim] height, width


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(height, width):
    return (torch.randn(2, 3, height, width),)


class Right(Net):
    def forward(self, x):
        patches = F.unfold(x, 2, stride=2)
        return F.fold(patches, x.shape[2:], 2, stride=2) - x


def right():
    torch.manual_seed(0)
    return Right().eval()
