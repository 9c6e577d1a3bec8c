"""An axis that `squeeze(1)` drops where its size is 1, and keeps elsewhere, as in eager."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"x": "batch n 3"}
sizes = {"batch": (2, [1, 4]), "n": (5, [1, 2])}
exports = True


class Squeezed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x).squeeze(1).tanh() * 2


def model() -> nn.Module:
    torch.manual_seed(0)
    return Squeezed().eval()


def inputs(batch: int, n: int) -> tuple[object, ...]:
    return (torch.randn(batch, n, 3),)
