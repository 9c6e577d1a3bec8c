"""One condition asks for a size and for values: `if n > 8 and x.abs().max() > 2`."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"signal": "batch n"}
sizes = {"batch": (2, [1]), "n": (10, [1, 8, 9, 20])}
exports = True


class Compress(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.slope = nn.Parameter(torch.tensor(0.6))

    def forward(self, signal: Tensor) -> Tensor:
        centred = signal - signal.mean(dim=1, keepdim=True)
        if signal.shape[1] > 8 and signal.abs().max() > 2:
            centred = centred.sign() * (1 + centred.abs()).log()
        return centred * self.slope


def model() -> nn.Module:
    torch.manual_seed(0)
    return Compress().eval()


def inputs(batch: int, n: int) -> tuple[object, ...]:
    return (torch.rand(batch, n),)


def loud(batch: int, n: int) -> tuple[object, ...]:
    return (torch.rand(batch, n) * 3 + 2.5,)


sides = (inputs, loud)
