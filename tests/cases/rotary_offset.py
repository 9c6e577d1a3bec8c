"""Rotary positions that start where the cache ends: `arange` from one size to a sum of two."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"query": "batch 2 seq 6", "key": "batch 2 seq 6", "earlier": "batch 2 past 6"}
sizes = {"batch": (3, [1, 2]), "seq": (4, [1, 6]), "past": (5, [1, 8])}
exports = True


class RotaryOffset(nn.Module):
    frequencies: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("frequencies", 50.0 ** (-torch.arange(3) / 3))

    def rotate(self, vectors: Tensor, start: int) -> Tensor:
        steps = torch.arange(start, start + vectors.shape[2], dtype=torch.float32)
        angles = steps.unsqueeze(1) * self.frequencies
        real, imaginary = vectors.split(3, dim=-1)
        turned = real * angles.cos() - imaginary * angles.sin(), imaginary * angles.cos() + real * angles.sin()
        return torch.cat(turned, dim=-1)

    def forward(self, query: Tensor, key: Tensor, earlier: Tensor) -> tuple[Tensor, Tensor]:
        past = earlier.shape[2]
        keys = torch.cat([earlier, self.rotate(key, past)], dim=2)
        return (self.rotate(query, past) @ keys.mT).softmax(dim=-1), keys


def model() -> nn.Module:
    torch.manual_seed(0)
    return RotaryOffset().eval()


def inputs(batch: int, seq: int, past: int) -> tuple[object, ...]:
    return torch.randn(batch, 2, seq, 6), torch.randn(batch, 2, seq, 6), torch.randn(batch, 2, past, 6)
