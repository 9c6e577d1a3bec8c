"""`while` the change is larger than a tolerance: the number of turns depends on values."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"start": "batch n"}
sizes = {"batch": (2, [1]), "n": (4, [1, 8])}
exports = True


class FixedPoint(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.pull = nn.Parameter(torch.tensor(0.5))

    def forward(self, start: Tensor) -> Tensor:
        state, change = start, start.new_tensor(1.0)
        while change > 1e-2:
            following = torch.cos(self.pull * state)
            change = (following - state).abs().max()
            state = following
        return state


def model() -> nn.Module:
    torch.manual_seed(0)
    return FixedPoint().eval()


def inputs(batch: int, n: int) -> tuple[object, ...]:
    return (torch.randn(batch, n) * 3,)
