"""Each layer of a ModuleList pads an odd length to an even one before it halves it."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"spectrum": "batch bins 5"}
sizes = {"batch": (2, [1, 3]), "bins": (12, [1, 7, 9, 16])}
exports = True


class Merging(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(10)
        self.reduce = nn.Linear(10, 5)

    def forward(self, spectrum: Tensor) -> Tensor:
        if spectrum.shape[1] % 2 == 1:
            spectrum = F.pad(spectrum, (0, 0, 0, 1))
        pairs = torch.cat([spectrum[:, 0::2], spectrum[:, 1::2]], dim=-1)
        return self.reduce(self.norm(pairs))


class Pyramid(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Merging() for _ in range(3))

    def forward(self, spectrum: Tensor) -> list[Tensor]:
        levels = []
        for layer in self.layers:
            spectrum = layer(spectrum)
            levels.append(spectrum)
        return levels


def model() -> nn.Module:
    torch.manual_seed(0)
    return Pyramid().eval()


def inputs(batch: int, bins: int) -> tuple[object, ...]:
    return (torch.randn(batch, bins, 5),)
