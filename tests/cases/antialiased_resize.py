"""Antialiased resizing by a factor and with aligned corners, which ONNX's Resize computes otherwise."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"x": "batch 3 h w"}
sizes = {"batch": (2, [1]), "h": (9, [4, 6, 17]), "w": (12, [5, 8, 21])}
exports = True


class Thumbnails(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        small = F.interpolate(x, scale_factor=0.6, mode="bilinear", antialias=True)
        fixed = F.interpolate(x, size=(7, 10), mode="bicubic", align_corners=True, antialias=True)
        return small, fixed, F.interpolate(x, size=(x.shape[2] // 2, 5), mode="bicubic", antialias=True)


def model() -> nn.Module:
    torch.manual_seed(0)
    return Thumbnails().eval()


def inputs(batch: int, h: int, w: int) -> tuple[object, ...]:
    return (torch.randn(batch, 3, h, w),)
