"""A state-space recurrence in a loop over time: each step forgets and adds, and the first step is peeled off."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"drive": "batch seq 3", "forget": "batch seq 3"}
sizes = {"batch": (2, [1, 4]), "seq": (5, [1, 2, 9])}
exports = True


class DecayingState(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.readout = nn.Linear(3, 2)

    def forward(self, drive: Tensor, forget: Tensor) -> tuple[Tensor, Tensor]:
        decay = forget.sigmoid()
        state = drive[:, 0]
        states = [state]
        for step in range(1, drive.size(1)):
            state = decay[:, step] * state + drive[:, step]
            states.append(state)
        return self.readout(torch.stack(states, dim=1)), state


def model() -> nn.Module:
    torch.manual_seed(0)
    return DecayingState().eval()


def inputs(batch: int, seq: int) -> tuple[object, ...]:
    return torch.randn(batch, seq, 3), torch.randn(batch, seq, 3)
