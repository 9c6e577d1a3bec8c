"""`squeeze()` without an axis: at batch 1 the output has one axis less."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"user": "batch 4", "item": "batch 6"}
sizes = {"batch": (4, [1, 2, 9])}
exports = True


class BareSqueeze(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.score = nn.Linear(10, 1)

    def forward(self, user: Tensor, item: Tensor) -> Tensor:
        return self.score(torch.cat([user, item], dim=1)).squeeze().sigmoid()


def model() -> nn.Module:
    torch.manual_seed(0)
    return BareSqueeze().eval()


def inputs(batch: int) -> tuple[object, ...]:
    return torch.randn(batch, 4), torch.randn(batch, 6)
