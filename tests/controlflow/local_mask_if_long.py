"""Attention is causal, and beyond 8 steps it is local too: the mask is made in a branch."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"hidden": "batch seq 8"}
sizes = {"batch": (2, [1, 3]), "seq": (6, [1, 8, 9, 20])}
exports = True


class LocalAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.window = 8
        self.qkv = nn.Linear(8, 24)

    def forward(self, hidden: Tensor) -> Tensor:
        seq = hidden.shape[1]
        q, k, v = self.qkv(hidden).chunk(3, dim=-1)
        keep = torch.ones(seq, seq, dtype=torch.bool).tril()
        if seq > self.window:
            keep = keep & torch.ones(seq, seq, dtype=torch.bool).triu(1 - self.window)
        scores = q @ k.transpose(1, 2) / 8**0.5
        return scores.masked_fill(~keep, float("-inf")).softmax(dim=-1) @ v


def model() -> nn.Module:
    torch.manual_seed(0)
    return LocalAttention().eval()


def inputs(batch: int, seq: int) -> tuple[object, ...]:
    return (torch.randn(batch, seq, 8),)
