"""Frames of sound viewed with the example's batch, in a front end."""

from __future__ import annotations

import torch
from torch import nn

from tests.models.planted.parts import Encoder

DIMS = {"input": "batch samples"}
EXAMPLE = {"batch": 3, "samples": 40}
OTHER = {"batch": 4, "samples": 61}
PINNED = ["batch"]
RULE = "mixed-batch"


class Front(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.filters = nn.Linear(8, 8)

    def forward(self, wave):
        frames = wave.unfold(-1, 8, 4)
        flat = self.filters(frames.reshape(-1, 8))
        return flat.view(3, -1, 8)  # planted


def model() -> nn.Module:
    return nn.Sequential(Front(), Encoder(), nn.Linear(8, 2))


def inputs(batch, samples):
    return (torch.randn(batch, samples),)
