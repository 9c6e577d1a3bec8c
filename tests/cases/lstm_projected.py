"""A bidirectional LSTM with projected states: ONNX has no operator for it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"frames": "batch seq 4", "state": "4 batch 2", "memory": "4 batch 5"}
sizes = {"batch": (3, [1, 2, 6]), "seq": (5, [1, 2, 13])}
exports = True


class ProjectedLstm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 5, num_layers=2, proj_size=2, bidirectional=True, batch_first=True)

    def forward(self, frames: Tensor, state: Tensor, memory: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        return self.lstm(frames, (state, memory))


def model() -> nn.Module:
    torch.manual_seed(0)
    return ProjectedLstm().eval()


def inputs(batch: int, seq: int) -> tuple[object, ...]:
    return torch.randn(batch, seq, 4), torch.randn(4, batch, 2), torch.randn(4, batch, 5)
