"""Attention within shifted 3 x 3 windows: height and width are split, rolled and put together again."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"patches": "batch 3*rows 3*columns 6"}
sizes = {"batch": (2, [1, 5]), "rows": (4, [2, 6]), "columns": (3, [1, 5])}
exports = True
SIDE = 3


class ShiftedWindows(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(6, 18)

    def forward(self, patches: Tensor) -> Tensor:
        batch, height, width, channels = patches.shape
        rows, columns = height // SIDE, width // SIDE
        rolled = patches.roll((-1, -1), dims=(1, 2))
        windows = rolled.view(batch, rows, SIDE, columns, SIDE, channels).transpose(2, 3)
        query, key, value = self.project(windows.reshape(-1, SIDE * SIDE, channels)).chunk(3, dim=-1)
        mixed = F.scaled_dot_product_attention(query, key, value)
        windows = mixed.view(batch, rows, columns, SIDE, SIDE, channels).transpose(2, 3)
        return windows.reshape(batch, height, width, channels).roll((1, 1), dims=(1, 2))


def model() -> nn.Module:
    torch.manual_seed(0)
    return ShiftedWindows().eval()


def inputs(batch: int, rows: int, columns: int) -> tuple[object, ...]:
    return (torch.randn(batch, 3 * rows, 3 * columns, 6),)
