"""The state is None before the first step, and the cell makes its own zeros then."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"signal": "steps batch 3"}
sizes = {"steps": (5, [1, 2, 8]), "batch": (2, [1, 3])}
exports = True


class LazyState(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(3, 4)
        self.head = nn.Linear(4, 2)

    def forward(self, signal: Tensor) -> Tensor:
        hidden = None
        outputs = []
        for step in signal:
            hidden = self.cell(step, hidden)
            outputs.append(self.head(hidden))
        return torch.stack(outputs)


def model() -> nn.Module:
    torch.manual_seed(0)
    return LazyState().eval()


def inputs(steps: int, batch: int) -> tuple[object, ...]:
    return (torch.randn(steps, batch, 3),)
