"""A view with the example's batch, which is also the number of heads, in the attention of the second block."""

from __future__ import annotations

import torch
from torch import nn

from tests.models.planted.parts import Block, Encoder, Tagger

DIMS = {"ids": "batch seq"}
EXAMPLE = {"batch": 2, "seq": 6}
OTHER = {"batch": 3, "seq": 9}
PINNED = ["batch"]
RULE = "pinned-dim"


class Heads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, x):
        q, k, v = (t.view(2, -1, 2, 4).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))  # planted
        return (torch.softmax(q @ k.transpose(-1, -2), -1) @ v).transpose(1, 2).flatten(2)


def model() -> nn.Module:
    return Tagger(Encoder(Block(Heads())))


def inputs(batch, seq):
    return (torch.randint(0, 20, (batch, seq)),)
