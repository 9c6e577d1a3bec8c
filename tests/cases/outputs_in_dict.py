"""Outputs in a dictionary that holds a list: results are nested too."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"pixels": "batch 3 height width"}
sizes = {"batch": (2, [1, 4]), "height": (12, [9, 16]), "width": (10, [8, 15])}
exports = True


class DictOutput(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stages = nn.ModuleList([nn.Conv2d(3, 4, 3, stride=2), nn.Conv2d(4, 5, 2, stride=2)])

    def forward(self, pixels: Tensor) -> dict[str, Tensor | list[Tensor]]:
        maps = []
        for stage in self.stages:
            pixels = stage(pixels).relu()
            maps.append(pixels)
        return {"pooled": pixels.mean(dim=(2, 3)), "maps": maps}


def model() -> nn.Module:
    torch.manual_seed(0)
    return DictOutput().eval()


def inputs(batch: int, height: int, width: int) -> tuple[object, ...]:
    return (torch.randn(batch, 3, height, width),)
