"""The example's length given to a helper that makes distances, in the attention of the second block."""

from __future__ import annotations

import torch
from torch import nn

from tests.models.planted.parts import Block, Encoder, Tagger

DIMS = {"ids": "batch seq"}
EXAMPLE = {"batch": 3, "seq": 7}
OTHER = {"batch": 5, "seq": 4}
PINNED = ["seq"]
RULE = "pinned-dim"


def distances(length):
    places = torch.arange(length)
    return (places[:, None] - places).abs()


class Near(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        bias = distances(7)  # planted
        return torch.softmax(q @ k.transpose(-1, -2) - bias, -1) @ v


def model() -> nn.Module:
    return Tagger(Encoder(Block(Near())))


def inputs(batch, seq):
    return (torch.randint(0, 20, (batch, seq)),)
