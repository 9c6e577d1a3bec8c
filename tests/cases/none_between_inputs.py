"""An optional input left as None between two given ones: names and dims must not slip by one."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"points": "batch count 3", "gain": "batch"}
sizes = {"batch": (2, [1, 4]), "count": (5, [1, 3, 9])}
exports = True


class NoneBetween(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(3, 6)

    def forward(self, points: Tensor, keep: Tensor | None = None, gain: Tensor | None = None) -> Tensor:
        projected = self.project(points)
        if keep is not None:
            projected = projected.masked_fill(~keep.unsqueeze(-1), 0.0)
        if gain is not None:
            projected = projected * gain[:, None, None]
        return projected


def model() -> nn.Module:
    torch.manual_seed(0)
    return NoneBetween().eval()


def inputs(batch: int, count: int) -> tuple[object, ...]:
    return torch.randn(batch, count, 3), None, torch.rand(batch)
