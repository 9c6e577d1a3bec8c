"""A branch sets an attribute of the module, and a later line reads it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"coordinates": "batch points 3"}
sizes = {"batch": (2, [1, 3]), "points": (5, [1, 8, 9, 18])}
exports = True


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = 1.0
        self.project = nn.Linear(3, 5)

    def choose_scale(self, coordinates: Tensor) -> None:
        if coordinates.shape[1] > 8:
            self.scale = 0.25
        else:
            self.scale = 2.0

    def forward(self, coordinates: Tensor) -> Tensor:
        self.choose_scale(coordinates)
        hidden = self.project(coordinates) * self.scale
        return hidden.sin().amax(dim=1)


def model() -> nn.Module:
    torch.manual_seed(0)
    return Scaled().eval()


def inputs(batch: int, points: int) -> tuple[object, ...]:
    return (torch.randn(batch, points, 3),)
