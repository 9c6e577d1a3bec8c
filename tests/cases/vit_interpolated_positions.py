"""A vision transformer whose learned positions are resized to the grid of patches."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"image": "batch 3 height width"}
sizes = {"batch": (2, [1, 3]), "height": (20, [8, 29]), "width": (24, [16, 33])}
exports = True


class ResizedPositions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 8, 4, stride=4)
        self.positions = nn.Parameter(torch.randn(1, 8, 3, 3))
        self.summary = nn.Parameter(torch.randn(1, 1, 8))
        self.project = nn.Linear(8, 24)

    def forward(self, image: Tensor) -> Tensor:
        patches = self.patches(image)
        grid = (image.shape[2] // 4, image.shape[3] // 4)
        patches = patches + F.interpolate(self.positions, size=grid, mode="bicubic", align_corners=False)
        tokens = torch.cat([self.summary.expand(image.shape[0], -1, -1), patches.flatten(2).transpose(1, 2)], dim=1)
        query, key, value = self.project(tokens).chunk(3, dim=-1)
        weights = (query[:, :1] @ key.transpose(1, 2) / 8**0.5).softmax(dim=-1)
        return (weights @ value).squeeze(1)


def model() -> nn.Module:
    torch.manual_seed(0)
    return ResizedPositions().eval()


def inputs(batch: int, height: int, width: int) -> tuple[object, ...]:
    return (torch.randn(batch, 3, height, width),)
