"""A kept table that is not what the module would build: no one file serves both the size it is for and the others."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"hidden": "batch seq 4"}
sizes = {"batch": (2, [1, 3]), "seq": (5, [1, 7, 9])}
exports = False  # PyTorch's answer at length 7 comes from another formula


class StaleTable(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tables = {7: torch.full((7,), 3.0)}

    def forward(self, hidden: Tensor) -> Tensor:
        seq = hidden.shape[1]
        if seq not in self.tables:
            self.tables[seq] = torch.arange(seq).float()
        return hidden * self.tables[seq].unsqueeze(1)


def model() -> nn.Module:
    return StaleTable().eval()


def inputs(batch: int, seq: int) -> tuple[object, ...]:
    return (torch.randn(batch, seq, 4),)
