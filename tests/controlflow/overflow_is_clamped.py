"""Values that are too large are clamped after every layer, as Whisper's and T5's layers do."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"hidden": "batch seq 4"}
sizes = {"batch": (2, [1]), "seq": (5, [1, 8])}
exports = True


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(4, 8)
        self.down = nn.Linear(8, 4)

    def forward(self, hidden: Tensor) -> Tensor:
        hidden = hidden + self.down(self.up(hidden).relu())
        if torch.isinf(hidden).any() or (hidden.abs() > 100).any():
            hidden = torch.clamp(hidden, min=-100, max=100)
        return hidden


class Stack(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(2))

    def forward(self, hidden: Tensor) -> Tensor:
        for layer in self.layers:
            hidden = layer(hidden)
        return hidden


def model() -> nn.Module:
    torch.manual_seed(0)
    return Stack().eval()


def inputs(batch: int, seq: int) -> tuple[object, ...]:
    return (torch.randn(batch, seq, 4),)


def huge(batch: int, seq: int) -> tuple[object, ...]:
    return (torch.randn(batch, seq, 4) * 300,)


sides = (inputs, huge)
