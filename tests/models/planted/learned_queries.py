"""Learned queries repeated for the example's batch, in a pooling by attention."""

from __future__ import annotations

import torch
from torch import nn

from tests.models.planted.parts import Encoder, Pooled

DIMS = {"ids": "batch seq"}
EXAMPLE = {"batch": 3, "seq": 7}
OTHER = {"batch": 5, "seq": 4}
PINNED = ["batch"]
RULE = "pinned-dim"


class Asking(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.queries = nn.Parameter(torch.randn(1, 4, 8))
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x):
        queries = self.queries.repeat(3, 1, 1)  # planted
        return self.attention(queries, x, x, need_weights=False)[0].mean(1)


def model() -> nn.Module:
    return Pooled(Encoder(), Asking())


def inputs(batch, seq):
    return (torch.randint(0, 20, (batch, seq)),)
