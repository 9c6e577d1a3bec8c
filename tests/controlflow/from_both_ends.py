"""`while` walks from both ends towards the middle: a size decides how many steps there are."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"x": "n 3"}
sizes = {"n": (6, [1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 17])}
exports = True


class Ends(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        first, last = 0, x.shape[0] - 1
        total = x[0]
        while first < last:
            total = total * 0.5 + x[first] * x[last]
            first += 1
            last -= 1
        return total + first


def model() -> nn.Module:
    torch.manual_seed(0)
    return Ends().eval()


def inputs(n: int) -> tuple[object, ...]:
    return (torch.randn(n, 3),)
