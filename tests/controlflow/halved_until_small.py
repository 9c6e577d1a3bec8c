"""`while` on values: how many turns there are is in no size, and a second condition reads a tensor."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"x": "n 3"}
sizes = {"n": (6, [1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 17])}
exports = True


class Shrunk(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        turns = 0
        while x.abs().amax() > 0.25 and turns < 30:
            x = x / 2
            turns += 1
        place = 0
        while place < x.shape[0] and x[place].sum() > 0:
            place += 1
        return x * (turns + 1) + place


def model() -> nn.Module:
    torch.manual_seed(0)
    return Shrunk().eval()


def inputs(n: int) -> tuple[object, ...]:
    return (torch.randn(n, 3),)


def negated(n: int) -> tuple[object, ...]:
    return (-inputs(n)[0],)  # type: ignore[operator]


sides = (inputs, negated)
