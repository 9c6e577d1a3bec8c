"""Pieces of four rows in a comprehension, of five in a loop: a size decides how many there are; the last is shorter."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"x": "n 3"}
sizes = {"n": (6, [1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 17])}
exports = True


class Pieces(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        parts = [piece.cumsum(0) for piece in x.split(4)]
        weighed = []
        total = torch.zeros(3)
        for place, piece in enumerate(torch.split(x, 5, dim=-2)):
            total = torch.tanh(total + piece.sum(0))
            weighed.append(piece.softmax(0) * (place + 1))
        return torch.cat(parts, dim=-2) + torch.cat(weighed) + total


def model() -> nn.Module:
    torch.manual_seed(0)
    return Pieces().eval()


def inputs(n: int) -> tuple[object, ...]:
    return (torch.randn(n, 3),)
