"""A submodule that is called twice branches on the values that it is given."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"left": "batch n 3", "right": "batch n 3"}
sizes = {"batch": (2, [1]), "n": (4, [1, 9])}
exports = True


class Calm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(3, 4)

    def forward(self, view: Tensor) -> Tensor:
        if view.abs().mean() > 1.0:
            view = view / view.abs().amax(dim=-1, keepdim=True)
        return self.project(view)


class Siamese(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calm = Calm()

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        return torch.einsum("bnd,bmd->bnm", self.calm(left), self.calm(right)).tanh()


def model() -> nn.Module:
    torch.manual_seed(0)
    return Siamese().eval()


def inputs(batch: int, n: int) -> tuple[object, ...]:
    return torch.rand(batch, n, 3) * 0.8, torch.rand(batch, n, 3) + 2


def exchanged(batch: int, n: int) -> tuple[object, ...]:
    return torch.rand(batch, n, 3) + 2, torch.rand(batch, n, 3) * 0.8


def both_loud(batch: int, n: int) -> tuple[object, ...]:
    return torch.rand(batch, n, 3) + 2, -torch.rand(batch, n, 3) - 2


sides = (inputs, exchanged, both_loud)
