"""An LSTM cell in a Python loop over time: the number of turns is a dim."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"signal": "batch steps 3"}
sizes = {"batch": (3, [1, 4]), "steps": (5, [1, 2, 8])}
exports = True


class CellInLoop(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(3, 4)

    def forward(self, signal: Tensor) -> Tensor:
        hidden = memory = signal.new_zeros(signal.shape[0], 4)
        trail = []
        for step in range(signal.shape[1]):
            hidden, memory = self.cell(signal[:, step], (hidden, memory))
            trail.append(hidden)
        return torch.stack(trail, dim=1)


def model() -> nn.Module:
    torch.manual_seed(0)
    return CellInLoop().eval()


def inputs(batch: int, steps: int) -> tuple[object, ...]:
    return (torch.randn(batch, steps, 3),)
