"""A plain object beside the layers that keeps a table and makes it longer when asked: state that is no attribute."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"hidden": "batch seq 4"}
sizes = {"batch": (2, [1, 3]), "seq": (5, [1, 12, 20])}
exports = True


class Table:
    def __init__(self) -> None:
        self.values = torch.empty(0)

    def upto(self, length: int) -> Tensor:
        if length > len(self.values):
            self.values = torch.arange(length).float().sqrt()
        return self.values[:length]


class WithHelper(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = Table()
        self.mix = nn.Linear(4, 4)

    def forward(self, hidden: Tensor) -> Tensor:
        return self.mix(hidden) * self.table.upto(hidden.shape[1]).unsqueeze(1)


def model() -> nn.Module:
    torch.manual_seed(0)
    network = WithHelper().eval()
    with torch.no_grad():
        network(torch.zeros(1, 12, 4))
    return network


def inputs(batch: int, seq: int) -> tuple[object, ...]:
    return (torch.randn(batch, seq, 4),)
