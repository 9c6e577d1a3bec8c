"""Two thirds of the image's size, cast to an int, as the size to resize to and as a factor."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"picture": "batch 2 height width"}
sizes = {"batch": (2, [1, 3]), "height": (15, [8, 25]), "width": (13, [9, 20])}
exports = True


class ScaledSize(nn.Module):
    def forward(self, picture: Tensor) -> tuple[Tensor, Tensor]:
        height, width = int(picture.shape[2] / 1.5), int(picture.shape[3] / 1.5)
        smaller = F.interpolate(picture, size=(height, width), mode="bilinear", align_corners=False)
        return smaller, smaller.mean(dim=(2, 3)) * width


def model() -> nn.Module:
    torch.manual_seed(0)
    return ScaledSize().eval()


def inputs(batch: int, height: int, width: int) -> tuple[object, ...]:
    return (torch.randn(batch, 2, height, width),)
