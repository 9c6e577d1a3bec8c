"""The body branches on the number of the step and on a size: every second step is gated if the batch is large."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"signal": "batch steps 3"}
sizes = {"batch": (2, [1, 3, 4]), "steps": (5, [1, 2, 8])}
exports = True


class Alternating(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.even = nn.Linear(3, 3)
        self.odd = nn.Linear(3, 3)

    def forward(self, signal: Tensor) -> Tensor:
        state = torch.zeros_like(signal[:, 0])
        states = []
        for t in range(signal.shape[1]):
            if t % 2 == 0:
                state = torch.tanh(self.even(signal[:, t]) + state)
            else:
                state = torch.sigmoid(self.odd(signal[:, t])) * state
            if signal.shape[0] > 2:
                state = state - state.mean(dim=0)
            states.append(state)
        return torch.stack(states, dim=1)


def model() -> nn.Module:
    torch.manual_seed(0)
    return Alternating().eval()


def inputs(batch: int, steps: int) -> tuple[object, ...]:
    return (torch.randn(batch, steps, 3),)
