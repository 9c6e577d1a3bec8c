"""A branch on a product: an image of more than 256 pixels is averaged down first."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"image": "batch 1 height width"}
sizes = {"batch": (1, [2]), "height": (16, [4, 17, 40]), "width": (16, [6, 17, 40])}
exports = True


class Shrink(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.most = 256
        self.features = nn.Conv2d(1, 4, 3, padding=1)

    def forward(self, image: Tensor) -> Tensor:
        height, width = image.shape[2:]
        if height * width > self.most:
            image = F.avg_pool2d(image, kernel_size=2, ceil_mode=True)
        features = self.features(image).relu()
        return features.flatten(2).mean(dim=-1)


def model() -> nn.Module:
    torch.manual_seed(0)
    return Shrink().eval()


def inputs(batch: int, height: int, width: int) -> tuple[object, ...]:
    return (torch.randn(batch, 1, height, width),)
