"""The first step copies and the others mix: `if t == 0` in the body; steps are joined by `cat`."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"notes": "batch steps 4"}
sizes = {"batch": (2, [1, 3]), "steps": (4, [1, 2, 3, 9])}
exports = True


class Melody(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.start = nn.Linear(4, 4)
        self.follow = nn.Linear(8, 4)

    def forward(self, notes: Tensor) -> Tensor:
        voices = []
        for t in range(notes.size(1)):
            note = notes[:, t : t + 1]
            if t == 0:
                voice = self.start(note)
            else:
                joined = torch.cat([note, voice], dim=-1)
                voice = self.follow(joined).tanh()
            voices.append(voice)
        return torch.cat(voices, dim=1)


def model() -> nn.Module:
    torch.manual_seed(0)
    return Melody().eval()


def inputs(batch: int, steps: int) -> tuple[object, ...]:
    return (torch.randn(batch, steps, 4),)
