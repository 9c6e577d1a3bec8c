"""A tensor grows by `cat` in every step and is read in the step: its length is another one each time."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"signal": "batch steps 4"}
sizes = {"batch": (2, [1, 3]), "steps": (4, [1, 2, 7])}
exports = True


class Cached(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query, self.key = nn.Linear(4, 4), nn.Linear(4, 4)
        self.begin = nn.Parameter(torch.randn(1, 1, 4))

    def forward(self, signal: Tensor) -> Tensor:
        cache = self.begin.expand(signal.shape[0], -1, -1)
        for t in range(signal.shape[1]):
            step = signal[:, t : t + 1]
            weights = (self.query(step) @ self.key(cache).transpose(1, 2)).softmax(dim=-1)
            cache = torch.cat([cache, step + weights @ cache], dim=1)
        return cache[:, 1:]


def model() -> nn.Module:
    torch.manual_seed(0)
    return Cached().eval()


def inputs(batch: int, steps: int) -> tuple[object, ...]:
    return (torch.randn(batch, steps, 4),)
