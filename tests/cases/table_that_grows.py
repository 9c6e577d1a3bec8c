"""A table of angles in buffers, built anew when a text is longer than it: a trace below sees a constant."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"hidden": "batch seq 8"}
sizes = {"batch": (2, [1, 3]), "seq": (5, [1, 8, 9, 21])}
exports = True


class GrowingTable(nn.Module):
    speeds: Tensor
    cosine: Tensor
    sine: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("speeds", 0.1 ** (torch.arange(4) / 4), persistent=False)
        self.build(8)

    def build(self, length: int) -> None:
        self.longest = length
        angles = torch.outer(torch.arange(length).float(), self.speeds).repeat(1, 2)
        self.register_buffer("cosine", angles.cos(), persistent=False)
        self.register_buffer("sine", angles.sin(), persistent=False)

    def forward(self, hidden: Tensor) -> Tensor:
        seq = hidden.shape[1]
        if seq > self.longest:
            self.build(seq)
        first, second = hidden.chunk(2, dim=-1)
        return hidden * self.cosine[:seq] + torch.cat([-second, first], dim=-1) * self.sine[:seq]


def model() -> nn.Module:
    return GrowingTable().eval()


def inputs(batch: int, seq: int) -> tuple[object, ...]:
    return (torch.randn(batch, seq, 8),)
