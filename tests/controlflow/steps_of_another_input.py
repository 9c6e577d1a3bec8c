"""The loop runs as often as another input has rows, and reads nothing of that input but its size."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"start": "batch 4", "horizon": "steps"}
sizes = {"batch": (2, [1, 3]), "steps": (5, [1, 2, 9])}
exports = True


class Rollout(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.change = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 4))

    def forward(self, start: Tensor, horizon: Tensor) -> Tensor:
        state = start
        path = [state]
        for _ in range(len(horizon)):
            state = state + 0.1 * self.change(state)
            path.append(state)
        return torch.stack(path, dim=1) * (1 + horizon.sum())


def model() -> nn.Module:
    torch.manual_seed(0)
    return Rollout().eval()


def inputs(batch: int, steps: int) -> tuple[object, ...]:
    return torch.randn(batch, 4), torch.linspace(0, 1, steps)
