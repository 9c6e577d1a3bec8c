"""One-hot coded categories with a fixed number of classes, next to numeric columns."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"category": "batch n", "numbers": "batch n 2"}
sizes = {"batch": (3, [1, 4]), "n": (5, [1, 2, 8])}
exports = True


class OneHotTable(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.readout = nn.Linear(8, 3)

    def forward(self, category: Tensor, numbers: Tensor) -> Tensor:
        columns = [F.one_hot(category, num_classes=6).to(numbers.dtype), numbers]
        return self.readout(torch.cat(columns, dim=-1))


def model() -> nn.Module:
    torch.manual_seed(0)
    return OneHotTable().eval()


def inputs(batch: int, n: int) -> tuple[object, ...]:
    return torch.randint(0, 6, (batch, n)), torch.randn(batch, n, 2)
