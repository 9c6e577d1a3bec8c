"""A table of positions is resized where the map has another size than the one it was made for."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"image": "batch 3 height width"}
sizes = {"batch": (1, [2]), "height": (24, [16, 40]), "width": (16, [24, 32])}
exports = True


class PatchEmbedding(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, 6, 4, stride=4)
        self.positions = nn.Parameter(torch.randn(1, 6, 6, 4))

    def forward(self, image: Tensor) -> Tensor:
        x = self.patch(image)
        height, width = x.shape[-2:]
        positions = self.positions
        if (height, width) != (6, 4):
            positions = F.interpolate(positions, size=(height, width), mode="bilinear", align_corners=False)
        return (x + positions).flatten(2).transpose(1, 2)


def model() -> nn.Module:
    torch.manual_seed(0)
    return PatchEmbedding().eval()


def inputs(batch: int, height: int, width: int) -> tuple[object, ...]:
    return (torch.randn(batch, 3, height, width),)
