"""torch.stft of a waveform of any length, centred, with its magnitude as the result."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"waveform": "batch samples"}
sizes = {"batch": (2, [1, 3]), "samples": (100, [40, 163])}
exports = True


class ShortTimeSpectrum(nn.Module):
    window: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(32))

    def forward(self, waveform: Tensor) -> Tensor:
        spectrum = torch.stft(waveform, n_fft=32, hop_length=12, window=self.window, return_complex=True)
        return torch.view_as_real(spectrum).square().sum(dim=-1)


def model() -> nn.Module:
    torch.manual_seed(0)
    return ShortTimeSpectrum().eval()


def inputs(batch: int, samples: int) -> tuple[object, ...]:
    return (torch.randn(batch, samples),)
