"""Queries and keys have lengths of their own."""

from __future__ import annotations

import torch
from torch import nn

dims = {"x": "batch seq _", "memory": "batch places _"}
example = {"batch": 4, "seq": 7, "places": 8}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 4, batch_first=True)

    def forward(self, x, memory):
        return self.attention(x, memory, memory)[0]


def model():
    torch.manual_seed(0)
    return Net().eval()


def inputs(batch, seq, places):
    return (torch.randn(batch, seq, 8), torch.randn(batch, places, 8))
