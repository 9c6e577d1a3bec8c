"""Similarities of all pairs, each once: the places above a diagonal depend on the size."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"x": "batch n 4"}
sizes = {"batch": (2, [1]), "n": (6, [2, 3, 9])}
exports = True


class Pairs(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        first, second = torch.triu_indices(x.shape[1], x.shape[1], offset=1).unbind()
        similar = (x @ x.transpose(1, 2))[:, first, second]
        lower = torch.tril_indices(x.shape[1], x.shape[1])
        return similar.softmax(-1), x[:, lower[0]] - x[:, lower[1]]


def model() -> nn.Module:
    torch.manual_seed(0)
    return Pairs().eval()


def inputs(batch: int, n: int) -> tuple[object, ...]:
    return (torch.randn(batch, n, 4),)
