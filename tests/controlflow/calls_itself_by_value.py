"""A function calls itself until the values are small enough."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"x": "batch n"}
sizes = {"batch": (2, [1]), "n": (4, [1, 8])}
exports = False  # how deep it goes depends on values


class ScalingAndSquaring(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rate = nn.Parameter(torch.tensor(0.8))

    def exponential(self, x: Tensor) -> Tensor:
        if x.abs().max() > 0.5:
            return self.exponential(x / 2).square()
        return 1 + x + x**2 / 2 + x**3 / 6

    def forward(self, x: Tensor) -> Tensor:
        return self.exponential(self.rate * x)


def model() -> nn.Module:
    torch.manual_seed(0)
    return ScalingAndSquaring().eval()


def inputs(batch: int, n: int) -> tuple[object, ...]:
    return (torch.randn(batch, n) * 4,)
