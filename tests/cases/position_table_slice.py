"""Learned positions cut to the sequence and expanded to the batch, with an example of batch 1 and length 1."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"words": "batch seq"}
sizes = {"batch": (1, [2, 5]), "seq": (1, [4, 12])}
exports = True


class PositionTable(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(14, 6)
        self.positions = nn.Parameter(torch.randn(1, 12, 6))
        self.scale = nn.Parameter(torch.rand(6))

    def forward(self, words: Tensor) -> Tensor:
        batch, seq = words.shape
        positions = self.positions[:, :seq].expand(batch, seq, 6)
        return self.embedding(words) + self.scale * positions


def model() -> nn.Module:
    torch.manual_seed(0)
    return PositionTable().eval()


def inputs(batch: int, seq: int) -> tuple[object, ...]:
    return (torch.randint(0, 14, (batch, seq)),)
