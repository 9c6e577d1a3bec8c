"""One bit of the length decides: torch's own translation asks the literal for its type."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"series": "n"}
sizes = {"n": (5, [1, 63, 64, 128, 192])}
exports = True


class ByOneBit(nn.Module):
    def forward(self, series: Tensor) -> Tensor:
        if series.shape[0] & 64:
            return series * 2
        return series + (series.shape[0] | 3) if 6 & series.shape[0] else series + 1


def model() -> nn.Module:
    return ByOneBit().eval()


def inputs(n: int) -> tuple[object, ...]:
    return (torch.randn(n),)
