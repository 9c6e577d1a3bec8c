"""A causal mask of the example's length, in the attention of the second block."""

from __future__ import annotations

import torch
from torch import nn

from tests.models.planted.parts import Attention, Block, Encoder, Tagger

DIMS = {"ids": "batch seq"}
EXAMPLE = {"batch": 3, "seq": 7}
OTHER = {"batch": 5, "seq": 4}
PINNED = ["seq"]
RULE = "pinned-dim"


class Causal(Attention):
    def forward(self, x):
        mask = torch.tril(torch.ones(7, 7, dtype=torch.bool))  # planted
        return super().forward(x, mask)


def model() -> nn.Module:
    return Tagger(Encoder(Block(Causal())))


def inputs(batch, seq):
    return (torch.randint(0, 20, (batch, seq)),)
