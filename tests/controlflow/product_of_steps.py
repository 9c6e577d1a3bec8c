"""A running product, kept beside a running sum, over steps that `split` cuts."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"alphas": "batch steps", "colours": "batch steps 3"}
sizes = {"batch": (2, [1, 3]), "steps": (5, [1, 2, 9])}
exports = True


class Compositing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.background = nn.Parameter(torch.rand(3))

    def forward(self, alphas: Tensor, colours: Tensor) -> tuple[Tensor, Tensor]:
        through = torch.ones(alphas.shape[0], 1)
        pixel = torch.zeros(alphas.shape[0], 3)
        for alpha, colour in zip(alphas.sigmoid().split(1, dim=1), colours.unbind(1)):
            pixel = pixel + through * alpha * colour
            through = through * (1 - alpha)
        return pixel + through * self.background, through


def model() -> nn.Module:
    torch.manual_seed(0)
    return Compositing().eval()


def inputs(batch: int, steps: int) -> tuple[object, ...]:
    return torch.randn(batch, steps), torch.rand(batch, steps, 3)
