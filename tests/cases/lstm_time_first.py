"""A bidirectional LSTM with time on axis 0, as torch has it by default."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"notes": "seq batch 4"}
sizes = {"seq": (6, [1, 3, 11]), "batch": (3, [1, 5])}
exports = True


class LstmTimeFirst(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 3, bidirectional=True)

    def forward(self, notes: Tensor) -> tuple[Tensor, Tensor]:
        encoded, (hidden, _) = self.lstm(notes)
        return encoded, hidden.transpose(0, 1).flatten(1)


def model() -> nn.Module:
    torch.manual_seed(0)
    return LstmTimeFirst().eval()


def inputs(seq: int, batch: int) -> tuple[object, ...]:
    return (torch.randn(seq, batch, 4),)
