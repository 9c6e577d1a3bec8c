"""A loop over rows is left by `break`, one is skipped by `continue`, and the last place is read afterwards."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"x": "n 3"}
sizes = {"n": (6, [1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 17])}
exports = True


class Left(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        total = x.new_zeros(3)
        for place, row in enumerate(x):
            if row.sum() < -2:
                break
            if row[0] < 0:
                continue
            total = torch.tanh(total + row)
        return total + place


def model() -> nn.Module:
    torch.manual_seed(0)
    return Left().eval()


def inputs(n: int) -> tuple[object, ...]:
    return (torch.randn(n, 3),)


def negated(n: int) -> tuple[object, ...]:
    return (-inputs(n)[0],)  # type: ignore[operator]


sides = (inputs, negated)
