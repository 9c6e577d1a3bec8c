"""The body branches on values: a state that grows too large is brought back."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"signal": "batch steps"}
sizes = {"batch": (2, [1, 3]), "steps": (6, [1, 2, 10])}
exports = True


class Reset(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.tensor(1.2))

    def forward(self, signal: Tensor) -> Tensor:
        level = torch.zeros(signal.shape[0])
        levels = []
        for sample in signal.unbind(1):
            level = level + self.gain * sample
            if level.abs().max() > 2.0:
                level = level * 0.25
            levels.append(level)
        return torch.stack(levels, dim=1)


def model() -> nn.Module:
    torch.manual_seed(0)
    return Reset().eval()


def inputs(batch: int, steps: int) -> tuple[object, ...]:
    return (torch.rand(batch, steps) * 0.1,)


def loud(batch: int, steps: int) -> tuple[object, ...]:
    return (torch.rand(batch, steps) * 2 + 1,)


sides = (inputs, loud)
