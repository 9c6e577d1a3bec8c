"""Positions kept under a text that holds the length: neither a size of a trace nor a traced one is a text."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"hidden": "batch seq 6"}
sizes = {"batch": (2, [1, 3]), "seq": (5, [1, 2, 14, 50])}
exports = True


class KeptUnderText(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Linear(6, 6)
        self.kept: dict[str, Tensor] = {}

    def positions(self, key: str) -> Tensor:
        if key not in self.kept:
            length = int(key.removeprefix("positions of "))
            self.kept[key] = torch.exp(-torch.arange(length) / 10.0)
        return self.kept[key]

    def forward(self, hidden: Tensor) -> Tensor:
        return self.scale(hidden) * self.positions(f"positions of {hidden.shape[1]}")[:, None]


def model() -> nn.Module:
    torch.manual_seed(0)
    return KeptUnderText().eval()


def inputs(batch: int, seq: int) -> tuple[object, ...]:
    return (torch.randn(batch, seq, 6),)
