"""A waveform cut into overlapping frames: their number is a quotient of its length."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"waveform": "batch samples"}
sizes = {"batch": (3, [1, 2]), "samples": (150, [48, 333])}
exports = True


class AudioFrames(nn.Module):
    window: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hamming_window(48))
        self.bands = nn.Linear(48, 6)

    def forward(self, waveform: Tensor) -> Tensor:
        frames = waveform.unfold(dimension=1, size=48, step=20)
        return self.bands(frames * self.window).square().add(1e-3).log()


def model() -> nn.Module:
    torch.manual_seed(0)
    return AudioFrames().eval()


def inputs(batch: int, samples: int) -> tuple[object, ...]:
    return (torch.randn(batch, samples),)
