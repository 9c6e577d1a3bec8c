"""Attention of a long sequence is computed in two halves, to need less memory."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"hidden": "batch n 8"}
sizes = {"batch": (2, [1]), "n": (24, [1, 32, 33, 50])}
exports = True


class MemorySavingAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(query, key, value)

    def forward(self, hidden: Tensor) -> Tensor:
        query, key, value = self.query(hidden), self.key(hidden), self.value(hidden)
        n = hidden.shape[1]
        if n > 32:
            half = n // 2
            first = self.attend(query[:, :half], key, value)
            second = self.attend(query[:, half:], key, value)
            return torch.cat([first, second], dim=1)
        return self.attend(query, key, value)


def model() -> nn.Module:
    torch.manual_seed(0)
    return MemorySavingAttention().eval()


def inputs(batch: int, n: int) -> tuple[object, ...]:
    return (torch.randn(batch, n, 8),)
