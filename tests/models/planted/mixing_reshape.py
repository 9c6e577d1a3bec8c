"""A reshape by the example's length that moves words into other samples, behind a norm over all words."""

from __future__ import annotations

import torch
from torch import nn

from tests.models.planted.parts import Encoder, Tagger

DIMS = {"ids": "batch seq"}
EXAMPLE = {"batch": 3, "seq": 7}
OTHER = {"batch": 5, "seq": 4}
PINNED = ["seq"]
RULE = "mixed-batch"


class Normed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(8)

    def forward(self, x):
        flat = self.norm(x.flatten(0, 1))
        return flat.reshape(-1, 7, 8).cumsum(1)  # planted


def model() -> nn.Module:
    return Tagger(nn.Sequential(Encoder(), Normed()))


def inputs(batch, seq):
    return (torch.randint(0, 20, (batch, seq)),)
