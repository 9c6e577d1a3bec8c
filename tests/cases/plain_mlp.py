"""Two linear layers: the easiest model there is, and it must stay easy."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"features": "batch 6"}
sizes = {"batch": (5, [1, 2, 12])}
exports = True


class PlainMlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, 3))

    def forward(self, features: Tensor) -> Tensor:
        return self.layers(features)


def model() -> nn.Module:
    torch.manual_seed(0)
    return PlainMlp().eval()


def inputs(batch: int) -> tuple[object, ...]:
    return (torch.randn(batch, 6),)
