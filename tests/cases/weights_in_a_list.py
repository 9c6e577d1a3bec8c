"""Steps in reverse order and their weights, both lists that Python makes for the length at hand."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"steps": "batch seq 4"}
sizes = {"batch": (2, [1, 3]), "seq": (5, [1, 2, 16, 41])}
exports = True


class Discounted(nn.Module):
    def forward(self, steps: Tensor) -> tuple[Tensor, Tensor]:
        length = steps.shape[1]
        order = [length - 1 - i for i in range(length)]
        weights = torch.tensor([1.0 - i / length for i in range(length)])
        backwards = steps[:, order] * weights[:, None]
        return backwards, backwards.sum(dim=1) / sum(range(1, length + 1))


def model() -> nn.Module:
    return Discounted().eval()


def inputs(batch: int, seq: int) -> tuple[object, ...]:
    return (torch.randn(batch, seq, 4),)
