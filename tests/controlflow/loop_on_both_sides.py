"""A value decides whether the loop runs forth or back; the loops of both sides carry a state."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"signal": "batch steps"}
sizes = {"batch": (2, [1, 3]), "steps": (5, [1, 2, 9])}
exports = True


class Direction(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.decay = nn.Parameter(torch.tensor(0.6))

    def forward(self, signal: Tensor) -> Tensor:
        level = torch.zeros(signal.shape[0])
        trail = []
        if signal.mean() > 0:
            for sample in signal.unbind(1):
                level = self.decay * level + sample
                trail.append(level)
        else:
            for t in reversed(range(signal.shape[1])):
                level = self.decay * level - signal[:, t]
                trail.append(level)
        return torch.stack(trail, dim=1)


def model() -> nn.Module:
    torch.manual_seed(0)
    return Direction().eval()


def inputs(batch: int, steps: int) -> tuple[object, ...]:
    return (torch.rand(batch, steps) + 0.2,)


def negative(batch: int, steps: int) -> tuple[object, ...]:
    return (-torch.rand(batch, steps) - 0.2,)


sides = (inputs, negative)
