"""A cell that is stepped as often as the example is long."""

from __future__ import annotations

import torch
from torch import nn

from tests.models.planted.parts import Pooled

DIMS = {"ids": "batch seq"}
EXAMPLE = {"batch": 3, "seq": 7}
OTHER = {"batch": 5, "seq": 4}
PINNED = ["seq"]
RULE = "frozen-value"


class Steps(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(8, 8)

    def forward(self, x):
        state = torch.zeros_like(x[:, 0])
        for place in range(7):  # planted
            state = self.cell(x[:, place], state)
        return state


def model() -> nn.Module:
    return Pooled(nn.LayerNorm(8), Steps())


def inputs(batch, seq):
    return (torch.randint(0, 20, (batch, seq)),)
