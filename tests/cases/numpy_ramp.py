"""A ramp from -1 to 1 over the sequence by numpy.linspace, which no trace can follow: it leaves numbers behind."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

dims = {"frames": "batch seq 6"}
sizes = {"batch": (2, [1, 3]), "seq": (5, [1, 2, 12, 45])}
exports = True


class Panned(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(6, 4)

    def forward(self, frames: Tensor) -> Tensor:
        places = torch.tensor(np.linspace(-1.0, 1.0, frames.shape[1]), dtype=torch.float32)
        return self.out(frames * places[:, None])


def model() -> nn.Module:
    torch.manual_seed(0)
    return Panned().eval()


def inputs(batch: int, seq: int) -> tuple[object, ...]:
    return (torch.randn(batch, seq, 6),)
