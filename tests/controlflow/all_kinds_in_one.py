"""A size cuts, a value scales, a loop runs and a size pads again: four kinds of control flow in one model."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"signal": "batch steps 4"}
sizes = {"batch": (2, [1]), "steps": (6, [1, 11, 12, 13, 20])}
exports = True


class Pipeline(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.longest = 12
        self.cell = nn.GRUCell(4, 4)
        self.mix = nn.Linear(8, 3)

    def forward(self, signal: Tensor) -> Tensor:
        if signal.shape[1] > self.longest:
            signal = signal[:, : self.longest]
        if signal.abs().max() > 4:
            signal = signal / signal.abs().max()
        hidden = torch.zeros(signal.shape[0], 4)
        states = []
        for t in range(signal.shape[1]):
            hidden = self.cell(signal[:, t], hidden)
            states.append(hidden)
        stacked = torch.stack(states, dim=1)
        if stacked.shape[1] % 2:
            stacked = F.pad(stacked, (0, 0, 0, 1))
        pairs = stacked.reshape(stacked.shape[0], stacked.shape[1] // 2, 8)
        return self.mix(pairs) / stacked.shape[1] ** 0.5


def model() -> nn.Module:
    torch.manual_seed(0)
    return Pipeline().eval()


def inputs(batch: int, steps: int) -> tuple[object, ...]:
    return (torch.rand(batch, steps, 4) * 3,)


def loud(batch: int, steps: int) -> tuple[object, ...]:
    return (torch.rand(batch, steps, 4) * 20 + 5,)


sides = (inputs, loud)
