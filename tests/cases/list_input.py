"""A list of sequences, each with a length of its own, joined along time."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"clips.0": "batch first 3", "clips.1": "batch second 3", "clips.2": "batch third 3", "volume": "batch"}
sizes = {"batch": (3, [1, 2]), "first": (4, [1, 7]), "second": (5, [2, 9]), "third": (6, [1])}
exports = True


class ListInput(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Linear(3, 4)

    def forward(self, clips: list[Tensor], volume: Tensor) -> tuple[Tensor, Tensor]:
        joined = torch.cat([self.encode(clip) for clip in clips], dim=1)
        return joined * volume.reshape(-1, 1, 1), joined.amax(dim=1)


def model() -> nn.Module:
    torch.manual_seed(0)
    return ListInput().eval()


def inputs(batch: int, first: int, second: int, third: int) -> tuple[object, ...]:
    return [torch.randn(batch, length, 3) for length in (first, second, third)], torch.rand(batch)
