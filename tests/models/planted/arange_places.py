"""Places counted to the example's length, in the embedding of the words."""

from __future__ import annotations

import torch
from torch import nn

from tests.models.planted.parts import Encoder, Tagger

DIMS = {"ids": "batch seq"}
EXAMPLE = {"batch": 3, "seq": 7}
OTHER = {"batch": 5, "seq": 4}
PINNED = ["seq"]
RULE = "pinned-dim"


class Words(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(20, 8), nn.Embedding(64, 8)

    def forward(self, ids):
        places = self.places(torch.arange(7))  # planted
        return self.words(ids) + places


def model() -> nn.Module:
    return Tagger(Encoder(), Words())


def inputs(batch, seq):
    return (torch.randint(0, 20, (batch, seq)),)
