"""An output of zeros is made before the loop and written step by step: `out[:, t] = h`."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"signal": "batch steps 3"}
sizes = {"batch": (2, [1, 3]), "steps": (5, [1, 2, 8])}
exports = True


class WriteRows(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.RNNCell(3, 4)

    def forward(self, signal: Tensor) -> tuple[Tensor, Tensor]:
        batch, steps = signal.shape[:2]
        outputs = torch.zeros(batch, steps, 4, dtype=signal.dtype)
        hidden = torch.zeros(batch, 4)
        for t in range(steps):
            hidden = self.cell(signal[:, t], hidden)
            outputs[:, t] = hidden
        return outputs, hidden


def model() -> nn.Module:
    torch.manual_seed(0)
    return WriteRows().eval()


def inputs(batch: int, steps: int) -> tuple[object, ...]:
    return (torch.randn(batch, steps, 3),)
