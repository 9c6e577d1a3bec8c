"""Rotary positions as complex numbers, with the axes that broadcasting needs."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"x": "batch n 2 4"}
sizes = {"batch": (2, [1, 3]), "n": (5, [1, 9])}
exports = True


class Rotary(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        angle = torch.outer(torch.arange(x.shape[1]).float(), torch.tensor([1.0, 0.1]))
        turn = torch.polar(torch.ones_like(angle), angle)
        pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * turn.unsqueeze(1).unsqueeze(0)).flatten(-2)


def model() -> nn.Module:
    torch.manual_seed(0)
    return Rotary().eval()


def inputs(batch: int, n: int) -> tuple[object, ...]:
    return (torch.randn(batch, n, 2, 4),)
