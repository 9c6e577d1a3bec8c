"""Running maxima, minima and products along a sequence, with the places of the maxima."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"x": "batch n"}
sizes = {"batch": (3, [1, 2]), "n": (7, [1, 2, 10])}
exports = True


class Running(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        largest, where = x.round().cummax(1)
        return largest, where, x.cummin(0).values, x.cumprod(1), x.logcumsumexp(1)


def model() -> nn.Module:
    torch.manual_seed(0)
    return Running().eval()


def inputs(batch: int, n: int) -> tuple[object, ...]:
    return (torch.randn(batch, n),)
