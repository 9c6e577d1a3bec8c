"""Tokens laid out as the image they came from: one axis of an input is the product of two dims."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"tokens": "batch height*width 5", "image": "batch 2 height width"}
sizes = {"batch": (2, [1, 3]), "height": (4, [1, 7]), "width": (6, [2, 5])}
exports = True


class TokensToMap(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fuse = nn.Conv2d(7, 3, 3, padding=1)

    def forward(self, tokens: Tensor, image: Tensor) -> Tensor:
        layout = tokens.transpose(1, 2).reshape(image.shape[0], 5, *image.shape[2:])
        return self.fuse(torch.cat([layout, image], dim=1))


def model() -> nn.Module:
    torch.manual_seed(0)
    return TokensToMap().eval()


def inputs(batch: int, height: int, width: int) -> tuple[object, ...]:
    return torch.randn(batch, height * width, 5), torch.randn(batch, 2, height, width)
