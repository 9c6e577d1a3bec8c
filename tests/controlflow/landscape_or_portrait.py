"""A branch on two dims against each other: a portrait image is turned before it is looked at."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"image": "batch 2 height width"}
sizes = {"batch": (1, [2]), "height": (6, [3, 5, 9]), "width": (8, [3, 5, 6])}
exports = True


class Orientation(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.along = nn.Conv2d(2, 4, (1, 3), padding=(0, 1))
        self.head = nn.Linear(4, 3)

    def forward(self, image: Tensor) -> Tensor:
        height, width = image.shape[-2], image.shape[-1]
        turned = image.transpose(-1, -2).flip(-1) if height > width else image
        features = self.along(turned).relu()
        return self.head(features.amax(dim=-1).mean(dim=-1))


def model() -> nn.Module:
    torch.manual_seed(0)
    return Orientation().eval()


def inputs(batch: int, height: int, width: int) -> tuple[object, ...]:
    return (torch.randn(batch, 2, height, width),)
