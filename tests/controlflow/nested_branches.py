"""A branch on the width stands inside a branch on the height, on one side only."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"patch": "batch height width"}
sizes = {"batch": (2, [1]), "height": (10, [3, 8, 9]), "width": (10, [3, 8, 9])}
exports = True


class Normalise(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.tensor([0.7, 1.3, 2.1]))

    def forward(self, patch: Tensor) -> Tensor:
        centred = patch - patch.mean(dim=(1, 2), keepdim=True)
        if patch.size(1) > 8:
            if patch.size(2) > 8:
                centred = centred * self.gain[0] + patch.amax(dim=(1, 2), keepdim=True)
            else:
                centred = centred * self.gain[1] - patch.amin(dim=2, keepdim=True)
            centred = centred.tanh()
        else:
            centred = centred * self.gain[2]
        return centred.sigmoid()


def model() -> nn.Module:
    torch.manual_seed(0)
    return Normalise().eval()


def inputs(batch: int, height: int, width: int) -> tuple[object, ...]:
    return (torch.randn(batch, height, width),)
