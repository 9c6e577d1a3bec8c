"""Patches folded back to the example's picture."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.models.planted.parts import UNet

DIMS = {"image": "batch 3 height width"}
EXAMPLE = {"batch": 2, "height": 16, "width": 16}
OTHER = {"batch": 3, "height": 24, "width": 8}
PINNED = ["height", "width"]
RULE = "pinned-dim"


class Neck(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Linear(32, 32)

    def forward(self, x):
        patches = F.unfold(x, 2, stride=2)
        patches = patches + self.mix(patches.transpose(1, 2)).transpose(1, 2)
        return F.fold(patches, (4, 4), 2, stride=2)  # planted


def model() -> nn.Module:
    return UNet(neck=Neck())


def inputs(batch, height, width):
    return (torch.randn(batch, 3, height, width),)
