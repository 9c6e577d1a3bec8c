"""The number of different ids, counted by Python: a trace would keep that of the example."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"ids": "batch seq"}
sizes = {"batch": (2, [1, 3]), "seq": (5, [1, 2, 9])}
exports = False


class DifferentIds(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(9, 4)

    def forward(self, ids: Tensor) -> Tensor:
        return self.table(ids) / len(set(ids.flatten().tolist()))


def model() -> nn.Module:
    torch.manual_seed(0)
    return DifferentIds().eval()


def inputs(batch: int, seq: int) -> tuple[object, ...]:
    return (torch.randint(0, 9, (batch, seq)),)
