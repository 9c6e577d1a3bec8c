"""A start of zeros for the example's batch, put in front before a recurrent body."""

from __future__ import annotations

import torch
from torch import nn

from tests.models.planted.parts import Tagger

DIMS = {"ids": "batch seq"}
EXAMPLE = {"batch": 3, "seq": 7}
OTHER = {"batch": 5, "seq": 4}
PINNED = ["batch"]
RULE = "pinned-dim"


class Shifted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(8, 8, batch_first=True)

    def forward(self, x):
        start = torch.zeros(3, 1, 8)  # planted
        return self.lstm(torch.cat([start, x[:, :-1]], 1))[0]


def model() -> nn.Module:
    return Tagger(nn.Sequential(nn.LayerNorm(8), Shifted()))


def inputs(batch, seq):
    return (torch.randint(0, 20, (batch, seq)),)
