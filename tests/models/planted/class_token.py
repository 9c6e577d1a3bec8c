"""A class token expanded to the example's batch, in front of the patches."""

from __future__ import annotations

import torch
from torch import nn

from tests.models.planted.parts import Encoder

DIMS = {"input": "batch 3 height width"}
EXAMPLE = {"batch": 2, "height": 16, "width": 16}
OTHER = {"batch": 3, "height": 24, "width": 12}
PINNED = ["batch"]
RULE = "pinned-dim"


class Cut(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 4, 4)
        self.token = nn.Parameter(torch.randn(1, 1, 8))

    def forward(self, image):
        x = self.conv(image).flatten(2).transpose(1, 2)
        token = self.token.expand(2, -1, -1)  # planted
        return torch.cat([token, x], 1)


def model() -> nn.Module:
    return nn.Sequential(Cut(), Encoder(), nn.Linear(8, 3))


def inputs(batch, height, width):
    return (torch.randn(batch, 3, height, width),)
