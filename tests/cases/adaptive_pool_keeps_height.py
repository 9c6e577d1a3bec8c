"""Adaptive pooling to (None, 3): the width is pooled and the height stays as it comes."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"spectrogram": "batch 2 height width"}
sizes = {"batch": (2, [1, 4]), "height": (7, [5, 12]), "width": (10, [3, 17])}
exports = True  # the pooling windows are those of the traced width


class PoolWidth(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d((None, 3))
        self.readout = nn.Linear(6, 4)

    def forward(self, spectrogram: Tensor) -> Tensor:
        return self.readout(self.pool(spectrogram).transpose(1, 2).flatten(2))


def model() -> nn.Module:
    torch.manual_seed(0)
    return PoolWidth().eval()


def inputs(batch: int, height: int, width: int) -> tuple[object, ...]:
    return (torch.randn(batch, 2, height, width),)
