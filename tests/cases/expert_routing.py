"""A mixture of experts: each expert sees only the tokens sent to it, and how many stands in the values."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"hidden": "batch seq 4"}
sizes = {"batch": (2, [1, 3]), "seq": (5, [1, 9])}
exports = True


class ExpertRouting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(4, 3)
        self.experts = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, hidden: Tensor) -> Tensor:
        tokens = hidden.reshape(-1, 4)
        weight, chosen = self.router(tokens).softmax(dim=-1).max(dim=-1)
        mixed = torch.zeros_like(tokens)
        for number, expert in enumerate(self.experts):
            (sent,) = torch.where(chosen == number)
            mixed.index_add_(0, sent, expert(tokens[sent]) * weight[sent, None])
        return mixed.view_as(hidden)


def model() -> nn.Module:
    torch.manual_seed(0)
    return ExpertRouting().eval()


def inputs(batch: int, seq: int) -> tuple[object, ...]:
    return (torch.randn(batch, seq, 4),)
