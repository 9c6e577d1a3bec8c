"""A plain RNN that answers from its last step: tracing unrolls or pins the time axis."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"series": "batch seq 4"}
sizes = {"batch": (2, [1, 5]), "seq": (7, [1, 3, 12])}
exports = True


class RnnLastStep(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.RNN(4, 10, batch_first=True)
        self.readout = nn.Linear(10, 3)

    def forward(self, series: Tensor) -> Tensor:
        hidden, _ = self.rnn(series)
        return self.readout(hidden[:, -1])


def model() -> nn.Module:
    torch.manual_seed(0)
    return RnnLastStep().eval()


def inputs(batch: int, seq: int) -> tuple[object, ...]:
    return (torch.randn(batch, seq, 4),)
