"""A Fourier transform of a signal, gated by an input with half as many bins and one."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"signal": "batch n", "gate": "batch n//2+1"}
sizes = {"batch": (2, [1, 3]), "n": (12, [5, 16, 21])}
exports = True


class SpectrumGate(nn.Module):
    def forward(self, signal: Tensor, gate: Tensor) -> Tensor:
        spectrum = torch.view_as_real(torch.fft.rfft(signal, dim=1))
        return spectrum.square().sum(dim=-1) * gate


def model() -> nn.Module:
    torch.manual_seed(0)
    return SpectrumGate().eval()


def inputs(batch: int, n: int) -> tuple[object, ...]:
    return torch.randn(batch, n), torch.rand(batch, n // 2 + 1)
