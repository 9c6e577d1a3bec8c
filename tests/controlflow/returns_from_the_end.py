"""Discounted returns are added from the last step to the first: `reversed(range(n))`, then the list is turned."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"rewards": "batch steps", "values": "batch steps"}
sizes = {"batch": (2, [1, 3]), "steps": (6, [1, 2, 12])}
exports = True


class Advantages(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.discount = 0.9
        self.scale = nn.Parameter(torch.tensor(0.7))

    def forward(self, rewards: Tensor, values: Tensor) -> Tensor:
        following = torch.zeros(rewards.shape[0])
        returns = []
        for step in reversed(range(rewards.shape[1])):
            following = rewards[:, step] + self.discount * following
            returns.append(following)
        returns.reverse()
        return (torch.stack(returns, dim=1) - values) * self.scale


def model() -> nn.Module:
    torch.manual_seed(0)
    return Advantages().eval()


def inputs(batch: int, steps: int) -> tuple[object, ...]:
    return torch.randn(batch, steps), torch.randn(batch, steps)
