"""A buffer is written to in place on one side of a branch, by a part that is called twice."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"frames": "count 4"}
sizes = {"count": (5, [1, 2, 3, 4, 9])}
exports = True


class Level(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.ones(4))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, frames: Tensor) -> Tensor:
        self.calls += 1
        if frames.shape[0] > 3:
            self.mean.mul_(0.9).add_(frames.mean(0), alpha=0.1)
        else:
            self.mean[0] = frames[0, 1]
        return frames - self.mean


class Levelled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.level = Level()
        self.register_buffer("loudest", torch.zeros(4))

    def forward(self, frames: Tensor) -> Tensor:
        if frames.sum() > 0:
            self.loudest.copy_(frames.amax(0))
        return self.level(2 * self.level(frames)) + self.loudest + self.level.calls


def model() -> nn.Module:
    return Levelled().eval()


def inputs(count: int) -> tuple[object, ...]:
    return (torch.randn(count, 4),)
