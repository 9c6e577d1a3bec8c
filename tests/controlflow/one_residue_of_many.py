"""Four of two thousand lengths take another way, which only arithmetic tells."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"series": "n"}
sizes = {"n": (5, [1, 462, 463, 464, 962, 1461, 1960, 2000])}
ranges = {"n": "1..2000"}
exports = True


class OneResidue(nn.Module):
    def forward(self, series: Tensor) -> Tensor:
        if (7 * series.shape[0] + 3) % 499 == 250:
            return series * 2
        return series + 1


def model() -> nn.Module:
    return OneResidue().eval()


def inputs(n: int) -> tuple[object, ...]:
    return (torch.randn(n),)
