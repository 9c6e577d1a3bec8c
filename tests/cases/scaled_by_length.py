"""Tensors with numbers computed from sizes: powers, remainders, slopes and factors."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"x": "batch n"}
sizes = {"batch": (2, [1, 3]), "n": (5, [1, 4, 8])}
exports = True


class Scaled(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        share = x.shape[1] / 3
        decayed = x.abs() ** (1 / x.shape[1]) - torch.remainder(x, share)
        mixed = torch.addcmul(x, x, x, value=share) + F.leaky_relu(x, 0.1 * x.shape[1])
        return decayed, mixed, torch.arange(x.shape[1] * 2) % x.shape[1], x.clamp(max=share) - share


def model() -> nn.Module:
    torch.manual_seed(0)
    return Scaled().eval()


def inputs(batch: int, n: int) -> tuple[object, ...]:
    return (torch.randn(batch, n),)
