"""A map is halved `while` it is wider than 8: the number of turns depends on a bounded size."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"image": "batch 2 8 width"}
sizes = {"batch": (2, [1]), "width": (20, [4, 8, 9, 16, 33, 60])}
ranges = {"width": "4..64"}
exports = True


class Reduce(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blend = nn.Conv2d(2, 2, 3, padding=1)
        self.head = nn.Linear(2, 4)

    def forward(self, image: Tensor) -> Tensor:
        while image.shape[-1] > 8:
            image = F.avg_pool2d(self.blend(image), (1, 2), ceil_mode=True)
        return self.head(image.mean(dim=(2, 3)))


def model() -> nn.Module:
    torch.manual_seed(0)
    return Reduce().eval()


def inputs(batch: int, width: int) -> tuple[object, ...]:
    return (torch.randn(batch, 2, 8, width),)
