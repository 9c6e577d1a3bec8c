"""Writes to places that are sizes: the last one, the middle one, the diagonal, every other one."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"x": "batch n"}
sizes = {"batch": (3, [1, 2]), "n": (7, [1, 2, 10])}
exports = True


class Written(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        last = x.shape[1] - 1
        y = x.clone()
        y[:, last] = 5.0
        y[0, last // 2] = x.mean()
        y[:, : x.shape[1] // 2] *= 2
        y[..., ::2] += 1
        return y, (x @ x.transpose(0, 1)).fill_diagonal_(0.0)


def model() -> nn.Module:
    torch.manual_seed(0)
    return Written().eval()


def inputs(batch: int, n: int) -> tuple[object, ...]:
    return (torch.randn(batch, n),)
