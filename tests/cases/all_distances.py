"""Distances between two sets of points in several norms, and within one set."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"left": "batch n 3", "right": "batch m 3"}
sizes = {"batch": (2, [1]), "n": (5, [1, 21]), "m": (4, [1, 7])}
exports = True


class Distances(nn.Module):
    def forward(self, left: Tensor, right: Tensor) -> tuple[Tensor, ...]:
        norms = [torch.cdist(left, right, p=p) for p in (0.0, 1.0, 2.0, 3.0, float("inf"))]
        return *norms, torch.cdist(left, left), F.pdist(left[0])


def model() -> nn.Module:
    torch.manual_seed(0)
    return Distances().eval()


def inputs(batch: int, n: int, m: int) -> tuple[object, ...]:
    return torch.randn(batch, n, 3), torch.randn(batch, m, 3)
