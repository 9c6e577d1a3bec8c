"""A signal turned by half its length, forwards in one axis and backwards in the other."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"x": "batch n 3"}
sizes = {"batch": (3, [1, 2]), "n": (7, [1, 2, 10])}
exports = True


class HalfRolled(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        half = x.shape[1] // 2
        turned = torch.roll(x, shifts=(half, -x.shape[0] + 1), dims=(1, 0))
        return turned, torch.fft.ifftshift(x, dim=1).roll(2, 1)


def model() -> nn.Module:
    torch.manual_seed(0)
    return HalfRolled().eval()


def inputs(batch: int, n: int) -> tuple[object, ...]:
    return (torch.randn(batch, n, 3),)
