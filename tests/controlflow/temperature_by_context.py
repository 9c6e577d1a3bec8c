"""A conditional expression gives a number and another gives a tensor: `a if n > 16 else b`."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"query": "batch seq 8"}
sizes = {"batch": (2, [1, 3]), "seq": (10, [1, 16, 17, 40])}
exports = True


class LongContextAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(8, 24)
        self.bias = nn.Parameter(torch.randn(8) * 0.2)

    def forward(self, query: Tensor) -> Tensor:
        steps = query.size(1)
        temperature = 1.0 if steps <= 16 else 0.5
        q, k, v = self.project(query).chunk(3, dim=-1)
        scores = q @ k.transpose(1, 2) / (8**0.5 * temperature)
        mixed = scores.softmax(dim=-1) @ v
        return mixed if steps > 16 else mixed + self.bias


def model() -> nn.Module:
    torch.manual_seed(0)
    return LongContextAttention().eval()


def inputs(batch: int, seq: int) -> tuple[object, ...]:
    return (torch.randn(batch, seq, 8),)
