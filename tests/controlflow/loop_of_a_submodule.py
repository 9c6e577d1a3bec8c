"""The loop stands in a submodule between two other layers, and its states are its own parameters."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"tokens": "batch seq"}
sizes = {"batch": (2, [1, 3]), "seq": (6, [1, 2, 9])}
exports = True


class Recurrence(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.start = nn.Parameter(torch.randn(1, 6))
        self.turn = nn.Linear(6, 6, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        state = self.start.expand(x.shape[0], -1)
        states = []
        for step in torch.unbind(x, dim=1):
            state = torch.tanh(step + self.turn(state))
            states.append(state)
        return torch.stack(states, dim=1)


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(17, 6)
        self.recurrence = Recurrence()
        self.head = nn.Sequential(nn.LayerNorm(6), nn.Linear(6, 3))

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.recurrence(self.words(tokens)))


def model() -> nn.Module:
    torch.manual_seed(0)
    return Tagger().eval()


def inputs(batch: int, seq: int) -> tuple[object, ...]:
    return (torch.randint(0, 17, (batch, seq)),)
