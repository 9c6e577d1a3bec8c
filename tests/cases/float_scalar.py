"""A Python float and a tensor without axes beside a sequence: numbers that are not dims."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"logits": "batch seq 6"}
sizes = {"batch": (2, [1, 4]), "seq": (3, [1, 8])}
exports = True


class Temperature(nn.Module):
    def forward(self, logits: Tensor, temperature: float, floor: Tensor) -> Tensor:
        return (logits / temperature).softmax(dim=-1).clamp(min=floor)


def model() -> nn.Module:
    torch.manual_seed(0)
    return Temperature().eval()


def inputs(batch: int, seq: int) -> tuple[object, ...]:
    return torch.randn(batch, seq, 6), 0.8, torch.tensor(0.05)
