"""A GRU cell over `range(x.shape[1])`; states are appended and stacked."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"signal": "batch steps 3"}
sizes = {"batch": (2, [1, 4]), "steps": (5, [1, 2, 9])}
exports = True


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(3, 6)
        self.head = nn.Linear(6, 2)

    def forward(self, signal: Tensor) -> Tensor:
        batch, steps, _ = signal.shape
        hidden = torch.zeros(batch, 6)
        states = []
        for t in range(steps):
            hidden = self.cell(signal[:, t, :], hidden)
            states.append(hidden)
        return self.head(torch.stack(states, dim=1))


def model() -> nn.Module:
    torch.manual_seed(0)
    return Recurrent().eval()


def inputs(batch: int, steps: int) -> tuple[object, ...]:
    return (torch.randn(batch, steps, 3),)
