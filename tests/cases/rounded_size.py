"""A fifth of the points, rounded, and at least one: `round` and `max` of a size."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"cloud": "batch points 3"}
sizes = {"batch": (2, [1, 3]), "points": (12, [2, 9, 30])}
exports = True


class FarthestFifth(nn.Module):
    def forward(self, cloud: Tensor) -> Tensor:
        count = max(1, round(cloud.shape[1] * 0.2))
        far = cloud.norm(dim=2).argsort(dim=1, descending=True)[:, :count]
        return cloud.gather(1, far.unsqueeze(-1).expand(-1, -1, 3))


def model() -> nn.Module:
    torch.manual_seed(0)
    return FarthestFifth().eval()


def inputs(batch: int, points: int) -> tuple[object, ...]:
    return (torch.randn(batch, points, 3),)
