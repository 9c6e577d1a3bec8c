"""TensorFlow's "same" padding: how much depends on the remainder of the size, by `if` and `max`."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"image": "batch 2 height width"}
sizes = {"batch": (2, [1, 3]), "height": (12, [7, 16]), "width": (15, [10, 14])}
exports = True


def needed(size: int, *, kernel: int, stride: int) -> tuple[int, int]:
    rest = size % stride
    total = max(kernel - (stride if rest == 0 else rest), 0)
    return total // 2, total - total // 2


class SamePadding(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(2, 3, kernel_size=5, stride=3)

    def forward(self, image: Tensor) -> Tensor:
        beside = needed(image.shape[3], kernel=5, stride=3)
        above = needed(image.shape[2], kernel=5, stride=3)
        return self.convolution(F.pad(image, (*beside, *above)))


def model() -> nn.Module:
    torch.manual_seed(0)
    return SamePadding().eval()


def inputs(batch: int, height: int, width: int) -> tuple[object, ...]:
    return (torch.randn(batch, 2, height, width),)
