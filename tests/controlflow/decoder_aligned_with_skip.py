"""A decoder's map is padded where it is smaller than the skip connection: a comparison of shapes."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"image": "batch 1 height width"}
sizes = {"batch": (1, [2]), "height": (8, [6, 9, 13]), "width": (11, [8, 10])}
exports = True


class SmallUNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Conv2d(1, 4, 3, padding=1)
        self.up = nn.ConvTranspose2d(4, 4, 2, stride=2)
        self.leave = nn.Conv2d(8, 1, 1)

    def forward(self, image: Tensor) -> Tensor:
        skip = self.enter(image).relu()
        x = self.up(F.max_pool2d(skip, 2))
        if x.shape != skip.shape:
            below, beside = skip.shape[2] - x.shape[2], skip.shape[3] - x.shape[3]
            x = F.pad(x, [beside // 2, beside - beside // 2, below // 2, below - below // 2])
        return self.leave(torch.cat([skip, x], dim=1))


def model() -> nn.Module:
    torch.manual_seed(0)
    return SmallUNet().eval()


def inputs(batch: int, height: int, width: int) -> tuple[object, ...]:
    return (torch.randn(batch, 1, height, width),)
