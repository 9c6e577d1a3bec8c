"""An LSTM cell with both states given by the caller and handed back as a tuple."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"signal": "batch steps 3", "hidden": "batch 4", "memory": "batch 4"}
sizes = {"batch": (2, [1, 3]), "steps": (5, [1, 2, 7])}
exports = True


class Stream(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(3, 4)
        self.norm = nn.LayerNorm(4)

    def forward(self, signal: Tensor, hidden: Tensor, memory: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        state = (hidden, memory)
        outputs = []
        for t in range(signal.shape[1]):
            state = self.cell(signal[:, t], state)
            outputs.append(self.norm(state[0]))
        return torch.stack(outputs, dim=1), state


def model() -> nn.Module:
    torch.manual_seed(0)
    return Stream().eval()


def inputs(batch: int, steps: int) -> tuple[object, ...]:
    return torch.randn(batch, steps, 3), torch.randn(batch, 4), torch.randn(batch, 4)
