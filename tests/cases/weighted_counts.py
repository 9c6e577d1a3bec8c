"""Counts and sums by label, and what a mask leaves: the sizes depend on the values."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"labels": "n", "weights": "n", "table": "n 3"}
sizes = {"n": (6, [1, 2, 13])}
exports = True


class Counts(nn.Module):
    def forward(self, labels: Tensor, weights: Tensor, table: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        kept = torch.masked_select(table, weights[:, None] > 0.5)
        return torch.bincount(labels, weights, minlength=4), torch.bincount(labels), kept


def model() -> nn.Module:
    torch.manual_seed(0)
    return Counts().eval()


def inputs(n: int) -> tuple[object, ...]:
    return torch.randint(0, 7, (n,)), torch.rand(n), torch.randn(n, 3)
