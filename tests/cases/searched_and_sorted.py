"""Values searched in sorted ones of another length, medians, and a sort that keeps the order of equals."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"edges": "batch n", "x": "batch m"}
sizes = {"batch": (2, [1]), "n": (6, [1, 3, 9]), "m": (5, [1, 2, 8])}
exports = True


class Searched(nn.Module):
    def forward(self, edges: Tensor, x: Tensor) -> tuple[Tensor, ...]:
        found = torch.searchsorted(edges.sort(1).values, x, right=True)
        bins = torch.bucketize(x, edges.flatten().msort())
        order = torch.argsort(found, dim=1, stable=True, descending=True)
        middle = torch.kthvalue(x, (x.shape[1] + 1) // 2, dim=1).values
        return found, bins, order, x.median(1).values - middle, torch.isin(found, bins)


def model() -> nn.Module:
    torch.manual_seed(0)
    return Searched().eval()


def inputs(batch: int, n: int, m: int) -> tuple[object, ...]:
    return torch.randn(batch, n), torch.randn(batch, m)
