"""A loud signal is scaled down and a quiet one is not: an `if` on values, kept with both ways."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"signal": "batch n"}
sizes = {"batch": (2, [1, 3]), "n": (5, [4, 8, 9])}
exports = True


class LimitLoudness(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.slope = nn.Parameter(torch.tensor(0.7))

    def forward(self, signal: Tensor) -> Tensor:
        if signal.abs().max() > 1:
            signal = signal / signal.abs().max()
        return signal * self.slope


def model() -> nn.Module:
    torch.manual_seed(0)
    return LimitLoudness().eval()


def inputs(batch: int, n: int) -> tuple[object, ...]:
    return (torch.rand(batch, n) * (3 if n % 2 else 0.9),)
