"""A bilinear score of every pair of two sequences by einsum."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"rows": "batch n 3", "columns": "batch m 4"}
sizes = {"batch": (2, [1, 3]), "n": (5, [1, 8]), "m": (6, [1, 4])}
exports = True


class PairScores(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.form = nn.Parameter(torch.randn(2, 3, 4))

    def forward(self, rows: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
        scores = torch.einsum("bnc,hcd,bmd->bhnm", rows, self.form, columns)
        return scores, torch.einsum("bhnm,bmd->bnhd", scores.softmax(dim=-1), columns).flatten(2)


def model() -> nn.Module:
    torch.manual_seed(0)
    return PairScores().eval()


def inputs(batch: int, n: int, m: int) -> tuple[object, ...]:
    return torch.randn(batch, n, 3), torch.randn(batch, m, 4)
