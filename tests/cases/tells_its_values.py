"""Values that are printed, for long inputs others: what is only told to people belongs to no file."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"x": "batch seq 6"}
sizes = {"batch": (2, [1, 3]), "seq": (5, [1, 2, 14, 50])}
exports = True


class TellsItsValues(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Linear(6, 6)

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] > 9:
            print(f"long: {x.mean()}")  # noqa: T201
        scaled = self.scale(x)
        print(scaled)  # noqa: T201
        return scaled


def model() -> nn.Module:
    torch.manual_seed(0)
    return TellsItsValues().eval()


def inputs(batch: int, seq: int) -> tuple[object, ...]:
    return (torch.randn(batch, seq, 6),)
