"""One block with a branch on the length is called three times, at three lengths."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"signal": "batch 4 length"}
sizes = {"batch": (2, [1]), "length": (40, [4, 16, 17, 18, 36, 70])}
exports = True


class Squeeze(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(4, 4, 3, padding=1)

    def forward(self, signal: Tensor) -> Tensor:
        signal = self.conv(signal).tanh()
        if signal.shape[-1] > 16:
            signal = F.max_pool1d(signal, 2)
        return signal


class ThreeSqueezes(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.squeeze = Squeeze()
        self.head = nn.Linear(4, 3)

    def forward(self, signal: Tensor) -> Tensor:
        first = self.squeeze(signal)
        second = self.squeeze(first)
        third = self.squeeze(second)
        return self.head(third.mean(dim=-1))


def model() -> nn.Module:
    torch.manual_seed(0)
    return ThreeSqueezes().eval()


def inputs(batch: int, length: int) -> tuple[object, ...]:
    return (torch.randn(batch, 4, length),)
