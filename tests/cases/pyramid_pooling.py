"""Adaptive average pooling to several grids: the pooling windows depend on the image's size."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"features": "batch 3 height width"}
sizes = {"batch": (2, [1, 4]), "height": (11, [6, 17]), "width": (14, [8, 9])}
exports = True  # the pooling windows are those of the traced image


class PyramidPooling(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.levels = nn.ModuleList(nn.AdaptiveAvgPool2d(grid) for grid in (1, 2, 4))

    def forward(self, features: Tensor) -> Tensor:
        return torch.cat([level(features).flatten(1) for level in self.levels], dim=1)


def model() -> nn.Module:
    torch.manual_seed(0)
    return PyramidPooling().eval()


def inputs(batch: int, height: int, width: int) -> tuple[object, ...]:
    return (torch.randn(batch, 3, height, width),)
