"""A GRU with its initial state as an input: the state's batch is on axis 1."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"frames": "batch seq 3", "state": "2 batch 5"}
sizes = {"batch": (4, [1, 2, 7]), "seq": (6, [1, 3, 11])}
exports = True


class GruWithState(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(3, 5, num_layers=2, batch_first=True)

    def forward(self, frames: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        return self.gru(frames, state)


def model() -> nn.Module:
    torch.manual_seed(0)
    return GruWithState().eval()


def inputs(batch: int, seq: int) -> tuple[object, ...]:
    return torch.randn(batch, seq, 3), torch.randn(2, batch, 5)
