"""A volume and an image seen through affine maps, corners aligned or not."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"theta": "batch 2 3", "image": "batch 3 h w", "turn": "batch 3 4", "volume": "batch 2 d h w"}
sizes = {"batch": (2, [1, 3]), "h": (5, [2, 8]), "w": (6, [2, 3]), "d": (4, [2, 3])}
exports = True


class Turned(nn.Module):
    def forward(self, theta: Tensor, image: Tensor, turn: Tensor, volume: Tensor) -> tuple[Tensor, Tensor]:
        grid = F.affine_grid(theta, image.size(), align_corners=False)
        seen = F.grid_sample(image, grid, padding_mode="border", align_corners=False)
        return seen, F.affine_grid(turn, list(volume.shape), align_corners=True)


def model() -> nn.Module:
    torch.manual_seed(0)
    return Turned().eval()


def inputs(batch: int, h: int, w: int, d: int) -> tuple[object, ...]:
    return (
        torch.randn(batch, 2, 3),
        torch.randn(batch, 3, h, w),
        torch.randn(batch, 3, 4),
        torch.randn(batch, 2, d, h, w),
    )
