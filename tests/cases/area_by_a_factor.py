"""Area resizing by a factor that need not come out even, in one axis and in two."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"line": "batch 3 t", "image": "batch 2 h w"}
sizes = {"batch": (2, [1, 3]), "t": (9, [2, 5, 16]), "h": (7, [2, 3, 12]), "w": (10, [2, 9])}
exports = True


class Shrink(nn.Module):
    def forward(self, line: Tensor, image: Tensor) -> tuple[Tensor, Tensor]:
        shorter = F.interpolate(line, scale_factor=0.7, mode="area")
        return shorter, F.interpolate(image, size=(image.shape[2] * 2 + 1, image.shape[3] // 2), mode="area")


def model() -> nn.Module:
    torch.manual_seed(0)
    return Shrink().eval()


def inputs(batch: int, t: int, h: int, w: int) -> tuple[object, ...]:
    return torch.randn(batch, 3, t), torch.randn(batch, 2, h, w)
