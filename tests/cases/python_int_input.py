"""A Python int that says how many rows to keep: a number, not a tensor, varies."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"rows": "batch 9 3", "keep": ""}
sizes = {"batch": (3, [1, 2]), "keep": (4, [2, 7])}
exports = True


class KeepFirst(nn.Module):
    def forward(self, rows: Tensor, keep: int) -> Tensor:
        return rows[:, :keep].sum(dim=1) / keep


def model() -> nn.Module:
    torch.manual_seed(0)
    return KeepFirst().eval()


def inputs(batch: int, keep: int) -> tuple[object, ...]:
    return torch.randn(batch, 9, 3), keep
