"""A sequence cut into two halves, the first longer by one where the length is odd."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"beads": "batch n 3"}
sizes = {"batch": (2, [1, 5]), "n": (7, [2, 6, 13])}
exports = True


class TwoHalves(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(3, 3)

    def forward(self, beads: Tensor) -> tuple[Tensor, Tensor]:
        front, back = beads.chunk(2, dim=1)
        return self.gate(front).sigmoid() * front, back - front.mean(dim=1, keepdim=True)


def model() -> nn.Module:
    torch.manual_seed(0)
    return TwoHalves().eval()


def inputs(batch: int, n: int) -> tuple[object, ...]:
    return (torch.randn(batch, n, 3),)
