"""Two maps pooled to the size of a third, by mean and by maximum, inside a submodule of a submodule."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"fine": "batch 3 h w", "coarse": "batch 4 n m"}
sizes = {"batch": (2, [1, 3]), "h": (9, [1, 6, 14]), "w": (12, [1, 5]), "n": (4, [1, 3, 11]), "m": (3, [1, 7])}
exports = True


class Pooled(nn.Module):
    def forward(self, fine: Tensor, coarse: Tensor) -> Tensor:
        size = coarse.shape[-2:]
        return torch.cat([F.adaptive_avg_pool2d(fine, size), F.adaptive_max_pool2d(fine, size), coarse], 1)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.pooled = Pooled()
        self.mix = nn.Conv2d(10, 4, 1)

    def forward(self, fine: Tensor, coarse: Tensor) -> Tensor:
        return self.mix(self.pooled(fine, coarse)).relu()


class Fusion(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])

    def forward(self, fine: Tensor, coarse: Tensor) -> Tensor:
        for block in self.blocks:
            coarse = coarse + block(fine, coarse)
        return coarse


def model() -> nn.Module:
    torch.manual_seed(0)
    return Fusion().eval()


def inputs(batch: int, h: int, w: int, n: int, m: int) -> tuple[object, ...]:
    return torch.randn(batch, 3, h, w), torch.randn(batch, 4, n, m)
