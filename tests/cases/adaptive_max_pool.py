"""Adaptive max pooling to a grid of 2 x 3."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"features": "batch 2 height width"}
sizes = {"batch": (2, [1, 3]), "height": (9, [4, 14]), "width": (7, [6, 12])}
exports = True  # no translation of adaptive max pooling


class RegionMaximum(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.pool = nn.AdaptiveMaxPool2d((2, 3))

    def forward(self, features: Tensor) -> Tensor:
        return self.pool(features).flatten(1)


def model() -> nn.Module:
    torch.manual_seed(0)
    return RegionMaximum().eval()


def inputs(batch: int, height: int, width: int) -> tuple[object, ...]:
    return (torch.randn(batch, 2, height, width),)
