"""A grid with the rows of the example's feature map, in the head of a detector."""

from __future__ import annotations

import torch
from torch import nn

from tests.models.planted.parts import Stage

DIMS = {"input": "batch 3 height width"}
EXAMPLE = {"batch": 2, "height": 20, "width": 16}
OTHER = {"batch": 3, "height": 24, "width": 12}
PINNED = ["height"]
RULE = "pinned-dim"


class Head(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(8, 2, 1)

    def forward(self, x):
        found = self.conv(x)
        rows = torch.arange(5, dtype=x.dtype)  # planted
        return found + rows[:, None]


def model() -> nn.Module:
    return nn.Sequential(Stage(3, 8, 2), Stage(8, 8, 2), Head())


def inputs(batch, height, width):
    return (torch.randn(batch, 3, height, width),)
