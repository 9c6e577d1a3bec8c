"""Tables of positions, resized with antialiasing to the image's patches: torch's kernel goes by the layout in memory.

Where the result is one patch wide, the table whose channels do not lie last has its first row in all rows.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"image": "batch 3 height width"}
sizes = {"batch": (2, [1, 3]), "height": (20, [12, 16, 24]), "width": (8, [4, 16, 20])}
exports = True


class TableResizedToImage(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 4, 4, 4)
        self.last = nn.Parameter(torch.randn(1, 4, 4, 4))
        self.first = nn.Parameter(torch.randn(1, 4, 4, 4))

    def forward(self, image: Tensor) -> Tensor:
        x = self.patches(image)
        last, first = self.last.permute(0, 3, 1, 2), self.first
        tables = [
            F.interpolate(one, size=x.shape[2:], mode="bicubic", antialias=True)
            for one in (last, last.contiguous(), first)
        ]
        return x + torch.cat(tables).mean(0)


def model() -> nn.Module:
    torch.manual_seed(0)
    return TableResizedToImage().eval()


def inputs(batch: int, height: int, width: int) -> tuple[object, ...]:
    return (torch.randn(batch, 3, height, width),)
