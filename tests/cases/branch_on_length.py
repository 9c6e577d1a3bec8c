"""Long sequences are normalised and short ones are not: an `if` on a size, kept with both ways."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"series": "batch seq 3"}
sizes = {"batch": (2, [1, 4]), "seq": (6, [3, 8, 9, 20])}
exports = True


class BranchOnLength(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(3, 5)

    def forward(self, series: Tensor) -> Tensor:
        if series.shape[1] > 8:
            series = series / series.square().mean(dim=1, keepdim=True).sqrt()
        return self.project(series)


def model() -> nn.Module:
    torch.manual_seed(0)
    return BranchOnLength().eval()


def inputs(batch: int, seq: int) -> tuple[object, ...]:
    return (torch.randn(batch, seq, 3) + 1,)
