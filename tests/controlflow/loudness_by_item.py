"""The peak is taken out of the tensor by `.item()` and compared; one side returns early."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"wave": "batch samples"}
sizes = {"batch": (2, [1, 3]), "samples": (8, [1, 5, 20])}
exports = True


class Limiter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.tensor(0.8))

    def forward(self, wave: Tensor) -> Tensor:
        wave = wave * self.gain
        peak = wave.abs().max().item()
        if peak <= 1.0:
            return wave
        return wave.tanh() + 0.1 * wave


def model() -> nn.Module:
    torch.manual_seed(0)
    return Limiter().eval()


def inputs(batch: int, samples: int) -> tuple[object, ...]:
    return (torch.rand(batch, samples) * 0.9 + 0.1,)


def loud(batch: int, samples: int) -> tuple[object, ...]:
    return (torch.randn(batch, samples) * 2 + 8,)


sides = (inputs, loud)
