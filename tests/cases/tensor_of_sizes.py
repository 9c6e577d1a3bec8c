"""Sizes put into a tensor with torch.tensor, to scale boxes: the tensor must not become a constant."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"features": "2 4 height width", "boxes": "count 4"}
sizes = {"height": (14, [9, 23]), "width": (19, [10, 31]), "count": (3, [1, 8])}
exports = True


class BoxesToPixels(nn.Module):
    def forward(self, features: Tensor, boxes: Tensor) -> tuple[Tensor, Tensor]:
        height, width = features.shape[2], features.shape[3]
        extent = torch.tensor([width, height, width, height], dtype=boxes.dtype)
        return boxes * extent, features.amax(dim=(2, 3))


def model() -> nn.Module:
    torch.manual_seed(0)
    return BoxesToPixels().eval()


def inputs(height: int, width: int, count: int) -> tuple[object, ...]:
    return torch.randn(2, 4, height, width), torch.rand(count, 4)
