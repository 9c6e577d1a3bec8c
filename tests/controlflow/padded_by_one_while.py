"""A signal is padded one sample at a time `while` its length is no multiple of 4."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"signal": "batch samples"}
sizes = {"batch": (2, [1, 3]), "samples": (7, [1, 4, 5, 6, 12])}
exports = True


class Blocks(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Linear(4, 3)

    def forward(self, signal: Tensor) -> Tensor:
        while signal.shape[1] % 4 != 0:
            signal = F.pad(signal, (0, 1))
        blocks = signal.reshape(signal.shape[0], -1, 4)
        return self.mix(blocks).relu()


def model() -> nn.Module:
    torch.manual_seed(0)
    return Blocks().eval()


def inputs(batch: int, samples: int) -> tuple[object, ...]:
    return (torch.randn(batch, samples),)
