"""Neighbouring frames merged in pairs: the length must be even."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"frames": "batch 2*pairs 3"}
sizes = {"batch": (3, [1, 2]), "pairs": (4, [1, 7])}
exports = True


class PairedFrames(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.merge = nn.Linear(6, 4)

    def forward(self, frames: Tensor) -> Tensor:
        batch, length, width = frames.shape
        return self.merge(frames.view(batch, length // 2, width * 2))


def model() -> nn.Module:
    torch.manual_seed(0)
    return PairedFrames().eval()


def inputs(batch: int, pairs: int) -> tuple[object, ...]:
    return (torch.randn(batch, 2 * pairs, 3),)
