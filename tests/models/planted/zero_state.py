"""A first state of zeros for the example's batch, in a recurrent body."""

from __future__ import annotations

import torch
from torch import nn

from tests.models.planted.parts import Tagger

DIMS = {"ids": "batch seq"}
EXAMPLE = {"batch": 3, "seq": 7}
OTHER = {"batch": 5, "seq": 4}
PINNED = ["batch"]
RULE = "pinned-dim"


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(8, 8, batch_first=True)

    def forward(self, x):
        state = torch.zeros(1, 3, 8)  # planted
        return self.gru(x, state)[0] + x


def model() -> nn.Module:
    return Tagger(nn.Sequential(nn.LayerNorm(8), Recurrent()))


def inputs(batch, seq):
    return (torch.randint(0, 20, (batch, seq)),)
