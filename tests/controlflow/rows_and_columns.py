"""A loop over rows with a loop over columns inside: each cell sees its left neighbour and the row above."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"grid": "batch rows columns 2"}
sizes = {"batch": (2, [1]), "rows": (3, [1, 5]), "columns": (4, [1, 2])}
exports = True


class GridRecurrence(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Linear(2, 3)
        self.beside = nn.Linear(3, 3, bias=False)
        self.above = nn.Linear(3, 3, bias=False)

    def forward(self, grid: Tensor) -> Tensor:
        batch, rows, columns, _ = grid.shape
        entered = self.enter(grid)
        previous = torch.zeros(batch, columns, 3)
        result = []
        for i in range(rows):
            left = torch.zeros(batch, 3)
            row = []
            for j in range(columns):
                left = torch.tanh(entered[:, i, j] + self.beside(left) + self.above(previous[:, j]))
                row.append(left)
            previous = torch.stack(row, dim=1)
            result.append(previous)
        return torch.stack(result, dim=1)


def model() -> nn.Module:
    torch.manual_seed(0)
    return GridRecurrence().eval()


def inputs(batch: int, rows: int, columns: int) -> tuple[object, ...]:
    return (torch.randn(batch, rows, columns, 2),)
