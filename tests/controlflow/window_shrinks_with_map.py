"""A map smaller than the window shrinks the window, and then nothing is shifted."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"features": "batch side side 4"}
sizes = {"batch": (2, [1]), "side": (10, [1, 3, 5, 6, 13])}
exports = True


class ShiftedWindows(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.window = 5
        self.shift = 2
        self.mix = nn.Linear(4, 4)
        self.score = nn.Linear(4, 1)

    def forward(self, features: Tensor) -> Tensor:
        batch, height, width, channels = features.shape
        window, shift = self.window, self.shift
        if min(height, width) <= window:
            window, shift = min(height, width), 0
        x = F.pad(features, (0, 0, 0, -width % window, 0, -height % window))
        rows, columns = x.shape[1] // window, x.shape[2] // window
        x = torch.roll(x, (-shift, -shift), dims=(1, 2)) if shift > 0 else x
        x = x.view(batch, rows, window, columns, window, channels)
        x = x.permute(0, 1, 3, 2, 4, 5).reshape(-1, window * window, channels)
        x = self.score(x).softmax(dim=1) * self.mix(x)
        x = x.view(batch, rows, columns, window, window, channels)
        x = x.permute(0, 1, 3, 2, 4, 5).reshape(batch, rows * window, columns * window, channels)
        x = torch.roll(x, (shift, shift), dims=(1, 2)) if shift > 0 else x
        return features + x[:, :height, :width]


def model() -> nn.Module:
    torch.manual_seed(0)
    return ShiftedWindows().eval()


def inputs(batch: int, side: int) -> tuple[object, ...]:
    return (torch.randn(batch, side, side, 4),)
