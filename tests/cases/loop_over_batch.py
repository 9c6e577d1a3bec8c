"""A Python loop over the batch: iterating over a tensor takes as many turns as it has rows."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"sets": "batch items 3"}
sizes = {"batch": (3, [1, 2, 5]), "items": (4, [1, 7])}
exports = True


class LoopOverBatch(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(3, 2)

    def forward(self, sets: Tensor) -> Tensor:
        return torch.stack([self.project(items).amax(dim=0) for items in sets])


def model() -> nn.Module:
    torch.manual_seed(0)
    return LoopOverBatch().eval()


def inputs(batch: int, items: int) -> tuple[object, ...]:
    return (torch.randn(batch, items, 3),)
