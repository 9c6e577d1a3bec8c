"""Noise for long inputs alone, drawn by Python: the traced sizes know nothing of it."""

from __future__ import annotations

import random

import torch
from torch import Tensor, nn

dims = {"x": "n 4"}
sizes = {"n": (3, [1, 2, 7, 50])}
exports = False


class NoisyWhenLong(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * random.random() if x.shape[0] > 40 else x


def model() -> nn.Module:
    return NoisyWhenLong().eval()


def inputs(n: int) -> tuple[object, ...]:
    return (torch.randn(n, 4),)
