"""A pyramid of features: each map is brought to the size of the next finer one, whatever both are."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"coarse": "batch 2 h w", "fine": "batch 2 height width"}
sizes = {
    "batch": (2, [1, 3]), "h": (5, [14, 20, 21]), "w": (7, [20, 14, 3]),
    "height": (9, [16, 24, 3]), "width": (11, [24, 16, 66]),
}  # fmt: skip
exports = True


class NearestToFinerMap(nn.Module):
    def forward(self, coarse: Tensor, fine: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        merged = fine + F.interpolate(coarse, size=fine.shape[-2:], mode="nearest")
        larger = F.interpolate(merged, scale_factor=1.3)
        return larger, F.interpolate(merged, scale_factor=2), F.interpolate(coarse.mean(1), size=fine.shape[-1])


def model() -> nn.Module:
    return NearestToFinerMap()


def inputs(batch: int, h: int, w: int, height: int, width: int) -> tuple[object, ...]:
    return torch.randn(batch, 2, h, w), torch.randn(batch, 2, height, width)
