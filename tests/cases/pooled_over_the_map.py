"""Pooling with a kernel that is the size of the map: in both axes, in one, and over half of it."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"x": "batch 3 h w"}
sizes = {"batch": (2, [1, 4]), "h": (6, [2, 3, 9]), "w": (8, [4, 5, 11])}
exports = True


class Descriptor(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 5, 3, padding=1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x = self.stem(x)
        both = F.avg_pool2d(x, kernel_size=x.size()[2:]) + F.max_pool2d(x, x.shape[2:])
        columns = F.max_pool2d(x, (x.shape[2], 1))
        halves = F.avg_pool2d(x, (1, x.shape[3] // 2), stride=1, padding=(0, 1), count_include_pad=False)
        return both.flatten(1), columns, halves


def model() -> nn.Module:
    torch.manual_seed(0)
    return Descriptor().eval()


def inputs(batch: int, h: int, w: int) -> tuple[object, ...]:
    return (torch.randn(batch, 3, h, w),)
