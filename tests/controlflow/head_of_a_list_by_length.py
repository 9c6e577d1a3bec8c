"""A size says which entry of a list is taken: a layer, a factor, a function."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"x": "n 4"}
sizes = {"n": (6, [1, 2, 3, 4, 5, 7, 12, 13])}
exports = True


class Routed(nn.Module):
    factors = (0.5, 2.0, 3.0, 4.0)

    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        y = self.heads[x.shape[0] % 3](x) * self.factors[min(x.shape[0], 4) - 5]
        return [torch.relu, torch.tanh][x.shape[0] % 2](y)


def model() -> nn.Module:
    torch.manual_seed(0)
    return Routed().eval()


def inputs(n: int) -> tuple[object, ...]:
    return (torch.randn(n, 4),)
