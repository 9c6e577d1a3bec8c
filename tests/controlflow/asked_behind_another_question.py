"""The second question is asked only where the first was answered otherwise than at the example."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"grid": "rows columns"}
sizes = {"rows": (5, [1, 8, 34]), "columns": (4, [2, 9, 36])}
ranges = {"rows": "1..100", "columns": "1..100"}
exports = True


class Behind(nn.Module):
    def forward(self, grid: Tensor) -> Tensor:
        rows, columns = grid.shape
        if rows < columns < rows + 3 and (rows + columns) % 53 == 17:
            return grid * 2
        return grid + 1


def model() -> nn.Module:
    return Behind().eval()


def inputs(rows: int, columns: int) -> tuple[object, ...]:
    return (torch.randn(rows, columns),)
