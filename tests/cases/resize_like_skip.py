"""A coarse map resized to the shape of a finer one: the size to reach is another tensor's shape."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"image": "batch 2 height width"}
sizes = {"batch": (3, [1, 2]), "height": (22, [13, 32]), "width": (18, [11, 27])}
exports = True


class ResizeLikeSkip(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fine = nn.Conv2d(2, 4, 3, stride=2, padding=1)
        self.coarse = nn.Conv2d(4, 4, 3, stride=2, padding=1)

    def forward(self, image: Tensor) -> Tensor:
        fine = self.fine(image).relu()
        coarse = self.coarse(fine)
        merged = fine + F.interpolate(coarse, size=fine.shape[2:], mode="nearest")
        return F.interpolate(merged, size=image.shape[2:], mode="bilinear", align_corners=False)


def model() -> nn.Module:
    torch.manual_seed(0)
    return ResizeLikeSkip().eval()


def inputs(batch: int, height: int, width: int) -> tuple[object, ...]:
    return (torch.randn(batch, 2, height, width),)
