"""Short sequences run through a loop and long ones through a convolution: a loop on one side of a branch."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"signal": "batch steps 3"}
sizes = {"batch": (2, [1, 3]), "steps": (5, [1, 2, 8, 9, 20])}
exports = True


class LoopOrConvolution(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(3, 4)
        self.conv = nn.Conv1d(3, 4, 5, padding=2)
        self.head = nn.Linear(4, 2)

    def forward(self, signal: Tensor) -> Tensor:
        if signal.shape[1] <= 8:
            hidden = torch.zeros(signal.shape[0], 4)
            states = []
            for t in range(signal.shape[1]):
                hidden = self.cell(signal[:, t], hidden)
                states.append(hidden)
            features = torch.stack(states, dim=1)
        else:
            features = self.conv(signal.transpose(1, 2)).transpose(1, 2).tanh()
        return self.head(features)


def model() -> nn.Module:
    torch.manual_seed(0)
    return LoopOrConvolution().eval()


def inputs(batch: int, steps: int) -> tuple[object, ...]:
    return (torch.randn(batch, steps, 3),)
