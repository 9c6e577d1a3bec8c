"""One side keeps the length and the other halves it: the branch changes the shape of all that follows."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"frames": "batch time 6"}
sizes = {"batch": (2, [1, 3]), "time": (24, [1, 20, 21, 45])}
exports = True


class Subsample(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(6, 6, 3, stride=2, padding=1)
        self.attention = nn.MultiheadAttention(6, 2, batch_first=True)
        self.head = nn.Linear(6, 4)

    def forward(self, frames: Tensor) -> Tensor:
        if frames.shape[1] > 20:
            frames = self.conv(frames.transpose(1, 2)).transpose(1, 2).relu()
        mixed, _ = self.attention(frames, frames, frames, need_weights=False)
        return self.head(frames + mixed).log_softmax(dim=-1)


def model() -> nn.Module:
    torch.manual_seed(0)
    return Subsample().eval()


def inputs(batch: int, time: int) -> tuple[object, ...]:
    return (torch.randn(batch, time, 6),)
