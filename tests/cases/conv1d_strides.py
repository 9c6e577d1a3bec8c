"""Convolutions with strides over a waveform: the output's length is a quotient of a quotient."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"audio": "batch samples"}
sizes = {"batch": (2, [1, 3]), "samples": (64, [19, 101])}
exports = True


class StridedEncoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv1d(1, 4, kernel_size=7, stride=3),
            nn.GELU(),
            nn.Conv1d(4, 5, kernel_size=3, stride=2, dilation=2),
        )

    def forward(self, audio: Tensor) -> Tensor:
        return self.encoder(audio.unsqueeze(1)).transpose(1, 2)


def model() -> nn.Module:
    torch.manual_seed(0)
    return StridedEncoder().eval()


def inputs(batch: int, samples: int) -> tuple[object, ...]:
    return (torch.randn(batch, samples),)
