"""Only images that are large both ways, or very wide, are blurred: `and` and `or` of sizes."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"image": "batch 1 height width"}
sizes = {"batch": (1, [2]), "height": (10, [4, 8, 9]), "width": (10, [8, 9, 24, 25])}
exports = True


class BlurLarge(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 3, 3, padding=1)
        self.last = nn.Conv2d(3, 1, 1)

    def forward(self, image: Tensor) -> Tensor:
        height, width = image.shape[-2:]
        features = self.first(image).relu()
        if (height > 8 and width > 8) or width > 24:
            features = F.avg_pool2d(features, 3, stride=1, padding=1)
        return self.last(features)


def model() -> nn.Module:
    torch.manual_seed(0)
    return BlurLarge().eval()


def inputs(batch: int, height: int, width: int) -> tuple[object, ...]:
    return (torch.randn(batch, 1, height, width),)
