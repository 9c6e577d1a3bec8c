"""An image reduced by averaging areas to a fixed thumbnail."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"image": "batch 3 height width"}
sizes = {"batch": (2, [1, 3]), "height": (12, [8, 19]), "width": (16, [11, 21])}
exports = True  # the pooling windows are those of the traced image


class Thumbnail(nn.Module):
    def forward(self, image: Tensor) -> Tensor:
        return F.interpolate(image, size=(4, 5), mode="area")


def model() -> nn.Module:
    torch.manual_seed(0)
    return Thumbnail().eval()


def inputs(batch: int, height: int, width: int) -> tuple[object, ...]:
    return (torch.randn(batch, 3, height, width),)
