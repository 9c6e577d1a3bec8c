"""An image sampled through affine_grid: the grid is as large as the image."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"image": "batch 2 height width", "motion": "batch 2 3"}
sizes = {"batch": (2, [1, 3]), "height": (6, [4, 11]), "width": (8, [5, 9])}
exports = True


class AffineSampling(nn.Module):
    def forward(self, image: Tensor, motion: Tensor) -> Tensor:
        grid = F.affine_grid(motion, list(image.shape), align_corners=False)
        return F.grid_sample(image, grid, padding_mode="border", align_corners=False)


def model() -> nn.Module:
    torch.manual_seed(0)
    return AffineSampling().eval()


def inputs(batch: int, height: int, width: int) -> tuple[object, ...]:
    motion = torch.eye(2, 3).repeat(batch, 1, 1) + 0.1 * torch.randn(batch, 2, 3)
    return torch.randn(batch, 2, height, width), motion
