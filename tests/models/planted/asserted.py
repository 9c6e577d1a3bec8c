"""An assertion about the example's length, in the body of a tagger."""

from __future__ import annotations

import torch
from torch import nn

from tests.models.planted.parts import Encoder, Tagger

DIMS = {"ids": "batch seq"}
EXAMPLE = {"batch": 3, "seq": 7}
OTHER = {"batch": 5, "seq": 4}
PINNED = ["seq"]
RULE = "pinned-dim"


class Checked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = Encoder()

    def forward(self, x):
        assert x.shape[1] == 7, "seven words"  # planted
        return self.encoder(x)


def model() -> nn.Module:
    return Tagger(Checked())


def inputs(batch, seq):
    return (torch.randint(0, 20, (batch, seq)),)
