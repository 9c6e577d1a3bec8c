"""`while` halves a size until one is left, by pooling: any size may be declared, and how often is not bounded."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"x": "n 3"}
sizes = {"n": (6, [1, 2, 3, 4, 5, 8, 9, 17, 64, 5000])}
exports = True


class Halved(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[0]
        levels = 0
        while n > 1:
            x = F.avg_pool1d(x.T[None], 2, ceil_mode=True)[0].T * 1.1
            n = (n + 1) // 2
            levels += 1
        return x + levels


def model() -> nn.Module:
    torch.manual_seed(0)
    return Halved().eval()


def inputs(n: int) -> tuple[object, ...]:
    return (torch.randn(n, 3),)
