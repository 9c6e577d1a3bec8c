"""An input that the model never reads, with a dim of its own: the file must still accept it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"words": "batch seq", "labels": "batch seen", "weights": "batch seq"}
sizes = {"batch": (3, [1, 4]), "seq": (5, [1, 7]), "seen": (2, [1, 6])}
exports = True


class IgnoresLabels(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(12, 4)

    def forward(self, words: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
        return torch.einsum("bs,bsd->bd", weights, self.embedding(words))


def model() -> nn.Module:
    torch.manual_seed(0)
    return IgnoresLabels().eval()


def inputs(batch: int, seq: int, seen: int) -> tuple[object, ...]:
    return torch.randint(0, 12, (batch, seq)), torch.randint(0, 2, (batch, seen)), torch.rand(batch, seq)
