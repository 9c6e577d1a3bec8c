"""A sequence in three parts, each with its own gate, joined again; the last part may be shorter or empty."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"x": "batch n 4"}
sizes = {"batch": (2, [1, 3]), "n": (8, [3, 4, 7, 13])}
exports = True


class Gates(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gates = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        parts = [gate(part) for gate, part in zip(self.gates, x.chunk(3, dim=1), strict=False)]
        first, _, last = torch.tensor_split(x, 3, dim=1)
        return torch.cat(parts, dim=1), first.sum(1) - last.sum(1)


def model() -> nn.Module:
    torch.manual_seed(0)
    return Gates().eval()


def inputs(batch: int, n: int) -> tuple[object, ...]:
    return (torch.randn(batch, n, 4),)
