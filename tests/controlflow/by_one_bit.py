"""One bit of the length decides: the exporter has no word for it, so that it is refused with its line."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"series": "n"}
sizes = {"n": (5, [1, 63, 64, 128, 192])}
exports = False


class ByOneBit(nn.Module):
    def forward(self, series: Tensor) -> Tensor:
        if series.shape[0] & 64:
            return series * 2
        return series + 1


def model() -> nn.Module:
    return ByOneBit().eval()


def inputs(n: int) -> tuple[object, ...]:
    return (torch.randn(n),)
