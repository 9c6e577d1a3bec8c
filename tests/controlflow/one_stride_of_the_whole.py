"""`range(0, n, stride)`, where without chunks the stride is the whole length: one step, whatever the length is."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"sound": "batch 1 length"}
sizes = {"batch": (2, [1]), "length": (9, [1, 4, 30])}
exports = True


class Frames(nn.Module):
    def __init__(self, chunk: int | None) -> None:
        super().__init__()
        self.chunk = chunk
        self.conv = nn.Conv1d(1, 3, 3, padding=1)

    def forward(self, sound: Tensor) -> Tensor:
        length = sound.shape[-1]
        chunk = length if self.chunk is None else self.chunk
        frames = []
        for offset in range(0, length, chunk):
            frames.append(self.conv(sound[..., offset : offset + chunk]))
        return torch.stack(frames)


def model() -> nn.Module:
    torch.manual_seed(0)
    return Frames(None).eval()


def inputs(batch: int, length: int) -> tuple[object, ...]:
    return (torch.randn(batch, 1, length),)
