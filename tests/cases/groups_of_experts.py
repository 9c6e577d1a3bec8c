"""A mixture of experts by one grouped product over rows sorted by expert; some experts have no rows."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"x": "n 8"}
sizes = {"n": (6, [1, 2, 15])}
exports = True


class Experts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(8, 4)
        self.weight = nn.Parameter(torch.randn(4, 8, 8))

    def forward(self, x: Tensor) -> Tensor:
        share, expert = self.router(x).softmax(-1).max(-1)
        order = expert.argsort(stable=True)
        ends = torch.bincount(expert, minlength=4).cumsum(0).to(torch.int32)
        products = F.grouped_mm(x[order], self.weight, offs=ends)
        return torch.zeros_like(x).index_copy(0, order, products) * share[:, None]


def model() -> nn.Module:
    torch.manual_seed(0)
    return Experts().eval()


def inputs(n: int) -> tuple[object, ...]:
    return (torch.randn(n, 8),)
