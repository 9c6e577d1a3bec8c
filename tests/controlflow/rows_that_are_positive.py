"""A comprehension keeps the rows that pass a test: values decide how many there are, and an index decides of others."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"x": "n 3"}
sizes = {"n": (6, [1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 17])}
exports = True


class Filtered(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        kept = torch.stack([x.sum(0)] + [row * 2 for row in x if row.sum() > 0])
        even = [x[place] for place in range(x.shape[0]) if place % 2 == 0]
        return torch.cat([kept, torch.stack(even)])


def model() -> nn.Module:
    torch.manual_seed(0)
    return Filtered().eval()


def inputs(n: int) -> tuple[object, ...]:
    return (torch.randn(n, 3),)


def negated(n: int) -> tuple[object, ...]:
    return (-inputs(n)[0],)  # type: ignore[operator]


sides = (inputs, negated)
