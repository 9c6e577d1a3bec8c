"""Smoothing from the second step on: the first value is taken as it is, before the loop."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"prices": "batch days"}
sizes = {"batch": (2, [1, 3]), "days": (7, [1, 2, 3, 20])}
exports = True


class Smooth(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.logit = nn.Parameter(torch.tensor(-0.4))

    def forward(self, prices: Tensor) -> tuple[Tensor, Tensor]:
        alpha = torch.sigmoid(self.logit)
        smooth = [prices[:, 0]]
        for day in range(1, prices.shape[1]):
            smooth.append(alpha * prices[:, day] + (1 - alpha) * smooth[-1])
        level = torch.stack(smooth, dim=1)
        return level, prices - level


def model() -> nn.Module:
    torch.manual_seed(0)
    return Smooth().eval()


def inputs(batch: int, days: int) -> tuple[object, ...]:
    return (torch.randn(batch, days) + 3,)
