"""Recurrent layers over one sequence without a batch axis, one of them called twice, its first state learned."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"notes": "seq 3"}
sizes = {"seq": (5, [1, 2, 14])}
exports = True


class Melody(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Parameter(torch.randn(2, 3))
        self.gru = nn.GRU(3, 3, num_layers=2, dropout=0.5)
        self.rnn = nn.RNN(3, 4, nonlinearity="relu", bidirectional=True, bias=False)

    def forward(self, notes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        once, state = self.gru(notes, self.first)
        twice, _ = self.gru(once.flip(0), state)
        return twice, state, self.rnn(twice)[0][-1]


def model() -> nn.Module:
    torch.manual_seed(0)
    return Melody().eval()


def inputs(seq: int) -> tuple[object, ...]:
    return (torch.randn(seq, 3),)
