"""An input handed back unchanged, next to a result and the same result again."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"ids": "batch seq", "hidden": "batch seq 4"}
sizes = {"batch": (2, [1, 3]), "seq": (5, [1, 9])}
exports = True


class HandsBack(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(4, 6)

    def forward(self, ids: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        projected = self.project(hidden)
        return ids, projected, projected


def model() -> nn.Module:
    torch.manual_seed(0)
    return HandsBack().eval()


def inputs(batch: int, seq: int) -> tuple[object, ...]:
    return torch.randint(0, 50, (batch, seq)), torch.randn(batch, seq, 4)
