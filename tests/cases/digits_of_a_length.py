"""Numbers that come within a rounding of a whole one: int(math.log(243, 3)) is 4, and 1 / 49 goes 50 times into 1."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

dims = {"x": "n 3"}
sizes = {"n": (10, [1, 41, 49, 90, 243])}
exports = True


class DigitsOfLength(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        n = x.shape[0]
        return x * int(math.log(n, 3)), torch.arange(0, 1, 1 / n), x[: math.ceil(n * 0.3)] * round(n * 1.1)


def model() -> nn.Module:
    return DigitsOfLength()


def inputs(n: int) -> tuple[object, ...]:
    return (torch.randn(n, 3),)
