"""A clip shorter than the filter is projected and returned at once: two `return`s."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"clip": "batch 2 frames"}
sizes = {"batch": (2, [1, 3]), "frames": (12, [1, 6, 7, 8, 21])}
exports = True


class ClipEncoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.pointwise = nn.Conv1d(2, 5, 1)
        self.filter = nn.Conv1d(5, 5, 7, padding=3)

    def forward(self, clip: Tensor) -> Tensor:
        features = self.pointwise(clip)
        if clip.shape[-1] < 7:
            return features.relu()
        filtered = self.filter(features)
        return (features + filtered).relu()


def model() -> nn.Module:
    torch.manual_seed(0)
    return ClipEncoder().eval()


def inputs(batch: int, frames: int) -> tuple[object, ...]:
    return (torch.randn(batch, 2, frames),)
