"""Means, maxima and products of rows by segment, some segments without any row."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"x": "n 3", "segments": "n"}
sizes = {"n": (6, [1, 2, 17])}
exports = True


class Segments(nn.Module):
    def forward(self, x: Tensor, segments: Tensor) -> tuple[Tensor, ...]:
        place = segments[:, None].expand_as(x)
        start = torch.full((5, 3), 0.5)
        means = start.scatter_reduce(0, place, x, "mean", include_self=False)
        largest = start.index_reduce(0, segments, x, "amax")
        return means, largest, start.index_put((segments - 5,), x, accumulate=True)


def model() -> nn.Module:
    torch.manual_seed(0)
    return Segments().eval()


def inputs(n: int) -> tuple[object, ...]:
    return torch.randn(n, 3), torch.randint(0, 5, (n,))
