"""A filter on the half spectrum of a real signal and back, with an even or odd length, and a longer one."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"x": "batch n 3"}
sizes = {"batch": (2, [1, 3]), "n": (10, [1, 2, 5, 9, 16])}
exports = True


class Filtered(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        spectrum = torch.fft.rfft(x, dim=1)
        damped = spectrum / (1 + torch.fft.rfftfreq(x.shape[1])[:, None])
        longer = torch.fft.irfft(spectrum * 2, n=2 * x.shape[1] + 1, dim=1, norm="ortho")
        return torch.fft.irfft(damped, n=x.shape[1], dim=1), longer


def model() -> nn.Module:
    torch.manual_seed(0)
    return Filtered().eval()


def inputs(batch: int, n: int) -> tuple[object, ...]:
    return (torch.randn(batch, n, 3),)
