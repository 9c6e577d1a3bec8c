"""The longest of the given lengths cuts the batch: `int(lengths.max())` is a size."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"frames": "batch time 4", "lengths": "batch"}
sizes = {"batch": (3, [1, 4]), "time": (8, [1, 3, 12])}
exports = True


class CutToLongest(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(4, 5)

    def forward(self, frames: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        longest = int(lengths.max())
        frames = frames[:, :longest]
        mask = torch.arange(longest, device=frames.device)[None, :] < lengths[:, None]
        hidden = self.project(frames) * mask.unsqueeze(-1)
        return hidden, mask


def model() -> nn.Module:
    torch.manual_seed(0)
    return CutToLongest().eval()


def inputs(batch: int, time: int) -> tuple[object, ...]:
    return torch.randn(batch, time, 4), torch.randint(1, time + 1, (batch,))


def full(batch: int, time: int) -> tuple[object, ...]:
    return torch.randn(batch, time, 4), torch.full((batch,), time)


sides = (inputs, full)
