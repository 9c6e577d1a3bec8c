"""Booleans as the result: which pairs of words are the same, and whether any is."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"left": "batch n", "right": "batch m"}
sizes = {"batch": (3, [1, 2]), "n": (4, [1, 7]), "m": (5, [1, 6])}
exports = True


class SamePairs(nn.Module):
    def forward(self, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
        same = left.unsqueeze(2) == right.unsqueeze(1)
        return same, same.any(dim=2)


def model() -> nn.Module:
    torch.manual_seed(0)
    return SamePairs().eval()


def inputs(batch: int, n: int, m: int) -> tuple[object, ...]:
    return torch.randint(0, 5, (batch, n)), torch.randint(0, 5, (batch, m))
