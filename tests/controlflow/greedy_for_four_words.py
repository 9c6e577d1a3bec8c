"""Greedy decoding of four words over a memory of any length: a plain count, and a tensor that grows by `cat`."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"memory": "batch seq 6"}
sizes = {"batch": (2, [1, 3]), "seq": (5, [1, 9])}
exports = True


class Greedy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(9, 6)
        self.head = nn.Linear(6, 9)

    def forward(self, memory: Tensor) -> Tensor:
        tokens = torch.zeros(memory.shape[0], 1, dtype=torch.int64)
        for _ in range(4):
            hidden = self.words(tokens).cumsum(dim=1)
            weights = (hidden @ memory.transpose(1, 2)).softmax(dim=-1)
            logits = self.head(hidden + weights @ memory)
            chosen = logits[:, -1].argmax(dim=-1, keepdim=True)
            tokens = torch.cat([tokens, chosen], dim=1)
        return tokens


def model() -> nn.Module:
    torch.manual_seed(0)
    return Greedy().eval()


def inputs(batch: int, seq: int) -> tuple[object, ...]:
    return (torch.randn(batch, seq, 6),)
