"""A sum of values decides: `if series.sum() > 0`."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"series": "batch n"}
sizes = {"batch": (2, [1, 3]), "n": (6, [1, 7, 16])}
exports = True


class Rectify(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.tensor(1.3))

    def forward(self, series: Tensor) -> Tensor:
        scaled = series * self.gain
        if scaled.sum() > 0:
            scaled = scaled - scaled.mean(dim=1, keepdim=True)
            scaled = scaled.exp()
        return scaled / (1 + scaled.abs())


def model() -> nn.Module:
    torch.manual_seed(0)
    return Rectify().eval()


def inputs(batch: int, n: int) -> tuple[object, ...]:
    return (torch.rand(batch, n) + 0.5,)


def negative(batch: int, n: int) -> tuple[object, ...]:
    return (-torch.rand(batch, n) - 0.5,)


sides = (inputs, negative)
