"""Rows put in the order of their dates by take_along_dim, which wraps indices around at the traced length."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"rows": "batch n 2", "dates": "batch n"}
sizes = {"batch": (2, [1, 4]), "n": (6, [1, 3, 14])}
exports = True  # indices are taken modulo the traced length, silently


class InOrder(nn.Module):
    def forward(self, rows: Tensor, dates: Tensor) -> Tensor:
        order = dates.argsort(dim=1)
        return torch.take_along_dim(rows, order.unsqueeze(-1), dim=1)


def model() -> nn.Module:
    torch.manual_seed(0)
    return InOrder().eval()


def inputs(batch: int, n: int) -> tuple[object, ...]:
    return torch.randn(batch, n, 2), torch.rand(batch, n)
