"""A mean that divides by the example's length, behind an encoder."""

from __future__ import annotations

import torch
from torch import nn

from tests.models.planted.parts import Encoder, Pooled

DIMS = {"ids": "batch seq"}
EXAMPLE = {"batch": 3, "seq": 7}
OTHER = {"batch": 5, "seq": 4}
PINNED = ["seq"]
RULE = "frozen-value"


class Mean(nn.Module):
    def forward(self, x):
        return x.sum(1) / 7  # planted


def model() -> nn.Module:
    return Pooled(Encoder(), Mean())


def inputs(batch, seq):
    return (torch.randint(0, 20, (batch, seq)),)
