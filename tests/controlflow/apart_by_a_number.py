"""One pair of sizes in a hundred takes another way, and none near the example."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"grid": "rows columns"}
sizes = {"rows": (5, [1, 38, 41, 40]), "columns": (4, [1, 3])}
ranges = {"rows": "1..100", "columns": "1..100"}
exports = True


class Apart(nn.Module):
    def forward(self, grid: Tensor) -> Tensor:
        if grid.shape[0] == grid.shape[1] + 37:
            return grid * 2
        return grid + 1


def model() -> nn.Module:
    return Apart().eval()


def inputs(rows: int, columns: int) -> tuple[object, ...]:
    return (torch.randn(rows, columns),)
