"""A picture brought to the skip's size in the example, deep in a U-Net."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.models.planted.parts import UNet

DIMS = {"image": "batch 3 height width"}
EXAMPLE = {"batch": 2, "height": 16, "width": 16}
OTHER = {"batch": 3, "height": 21, "width": 13}
PINNED = ["height", "width"]
RULE = "pinned-dim"


class Rise(nn.Module):
    def forward(self, coarse, fine):
        return F.interpolate(coarse, size=(8, 8), mode="nearest")  # planted


def model() -> nn.Module:
    return UNet(Rise())


def inputs(batch, height, width):
    return (torch.randn(batch, 3, height, width),)
