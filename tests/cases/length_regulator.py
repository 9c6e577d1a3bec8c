"""Each sound repeated as often as its duration says: the output's length is the sum of values."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"sounds": "n 4", "durations": "n"}
sizes = {"n": (6, [1, 3, 12])}
exports = True


class LengthRegulator(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.decode = nn.Linear(4, 3)

    def forward(self, sounds: Tensor, durations: Tensor) -> Tensor:
        return self.decode(torch.repeat_interleave(sounds, durations, dim=0))


def model() -> nn.Module:
    torch.manual_seed(0)
    return LengthRegulator().eval()


def inputs(n: int) -> tuple[object, ...]:
    return torch.randn(n, 4), torch.randint(1, 4, (n,))
