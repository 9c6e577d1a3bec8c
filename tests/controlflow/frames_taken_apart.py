"""`frames.unbind(1)` gives the steps of the loop; the state is a running maximum."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"frames": "batch time 4"}
sizes = {"batch": (2, [1, 3]), "time": (6, [1, 2, 11])}
exports = True


class Envelope(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(4, 4)
        self.decay = 0.9

    def forward(self, frames: Tensor) -> tuple[Tensor, Tensor]:
        level = frames.new_full((frames.size(0), 4), -1.0)
        track = []
        for frame in frames.unbind(dim=1):
            level = torch.maximum(self.project(frame), level * self.decay)
            track.append(level)
        return torch.stack(track, 1), level


def model() -> nn.Module:
    torch.manual_seed(0)
    return Envelope().eval()


def inputs(batch: int, time: int) -> tuple[object, ...]:
    return (torch.randn(batch, time, 4),)
