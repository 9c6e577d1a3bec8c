"""Buffers that forward changes as it goes: a count of calls and the largest value seen, neither in the result."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"readings": "batch channels"}
sizes = {"batch": (3, [1, 2, 7]), "channels": (4, [1, 6])}
exports = True


class KeepsCount(nn.Module):
    calls: Tensor
    largest: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.register_buffer("largest", torch.zeros(()))

    def forward(self, readings: Tensor) -> Tensor:
        self.calls += 1
        self.largest.copy_(torch.maximum(self.largest, readings.max()))
        return readings / (1 + readings.abs().sum(dim=1, keepdim=True))


def model() -> nn.Module:
    torch.manual_seed(0)
    return KeepsCount().eval()


def inputs(batch: int, channels: int) -> tuple[object, ...]:
    return (torch.randn(batch, channels),)
