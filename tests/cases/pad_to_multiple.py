"""An image padded to a multiple of 6 only where it has to be, then cropped back."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"image": "batch 1 height width"}
sizes = {"batch": (2, [1, 3]), "height": (20, [12, 31]), "width": (17, [18, 24])}
exports = True


class PadThenCrop(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.shrink = nn.Conv2d(1, 3, 6, stride=6)
        self.grow = nn.ConvTranspose2d(3, 1, 6, stride=6)

    def forward(self, image: Tensor) -> Tensor:
        height, width = image.shape[2:]
        below, beside = (6 - height % 6) % 6, (6 - width % 6) % 6
        if below or beside:
            image = F.pad(image, (0, beside, 0, below))
        return self.grow(self.shrink(image).relu())[:, :, :height, :width]


def model() -> nn.Module:
    torch.manual_seed(0)
    return PadThenCrop().eval()


def inputs(batch: int, height: int, width: int) -> tuple[object, ...]:
    return (torch.randn(batch, 1, height, width),)
