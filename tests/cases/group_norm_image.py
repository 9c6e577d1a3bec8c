"""Group normalisation and a pixel shuffle of images of any size."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"image": "batch 3 height width"}
sizes = {"batch": (2, [1, 4]), "height": (5, [3, 10]), "width": (7, [4, 8])}
exports = True


class GroupNormUpscale(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(4, 8), nn.SiLU(), nn.PixelShuffle(2))

    def forward(self, image: Tensor) -> Tensor:
        return self.body(image)


def model() -> nn.Module:
    torch.manual_seed(0)
    return GroupNormUpscale().eval()


def inputs(batch: int, height: int, width: int) -> tuple[object, ...]:
    return (torch.randn(batch, 3, height, width),)
