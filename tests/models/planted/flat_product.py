"""A reshape to as many rows as the example has words in all, in a norm."""

from __future__ import annotations

import torch
from torch import nn

from tests.models.planted.parts import Encoder, Tagger

DIMS = {"ids": "batch seq"}
EXAMPLE = {"batch": 3, "seq": 7}
OTHER = {"batch": 5, "seq": 4}
PINNED = ["batch", "seq"]
RULE = "pinned-dim"


class Normed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(8)

    def forward(self, x):
        flat = x.reshape(21, 8)  # planted
        return self.norm(flat).view_as(x)


def model() -> nn.Module:
    return Tagger(nn.Sequential(Encoder(), Normed()))


def inputs(batch, seq):
    return (torch.randint(0, 20, (batch, seq)),)
