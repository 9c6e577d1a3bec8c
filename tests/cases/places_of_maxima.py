"""Adaptive maxima with their places, in one, two and three axes, one of them kept as it is."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"line": "batch 2 t", "image": "batch 2 h w", "volume": "batch 2 d h w"}
sizes = {"batch": (2, [1]), "t": (9, [1, 4, 13]), "h": (5, [1, 8]), "w": (6, [1, 9]), "d": (4, [1, 7])}
exports = True


class Maxima(nn.Module):
    def forward(self, line: Tensor, image: Tensor, volume: Tensor) -> tuple[Tensor, ...]:
        values, places = F.adaptive_max_pool2d(image, (3, 2), return_indices=True)
        kept = F.adaptive_max_pool2d(image, (None, 4))
        inner, where = F.adaptive_max_pool3d(volume, (2, 3, 1), return_indices=True)
        return values, places, kept, inner, where, *F.adaptive_max_pool1d(line, 5, return_indices=True)


def model() -> nn.Module:
    torch.manual_seed(0)
    return Maxima().eval()


def inputs(batch: int, t: int, h: int, w: int, d: int) -> tuple[object, ...]:
    return torch.randn(batch, 2, t), torch.randn(batch, 2, h, w), torch.randn(batch, 2, d, h, w)
