"""A comprehension of two loops and a filter: pairs of rows, of which the second is not before the first."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"x": "n 3"}
sizes = {"n": (6, [1, 2, 3, 5, 9])}
exports = True


class Pairs(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[0]
        pairs = [x[left] - x[right] for left in range(n) for right in range(n) if left <= right]
        return torch.stack(pairs)


def model() -> nn.Module:
    torch.manual_seed(0)
    return Pairs().eval()


def inputs(n: int) -> tuple[object, ...]:
    return (torch.randn(n, 3),)
