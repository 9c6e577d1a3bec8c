"""A table of places that is added whole, in the embedding of the words."""

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
        self.words = nn.Embedding(20, 8)
        self.places = nn.Parameter(torch.randn(1, 7, 8))

    def forward(self, ids):
        return self.words(ids) + self.places  # planted


def model() -> nn.Module:
    return Tagger(Encoder(), Words())


def inputs(batch, seq):
    return (torch.randint(0, 20, (batch, seq)),)
