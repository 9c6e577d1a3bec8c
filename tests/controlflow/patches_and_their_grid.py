"""Patches of an image that is padded first, and how many stand side by side: read from what the convolution gives."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"image": "batch 3 height width"}
sizes = {"batch": (2, [1]), "height": (9, [1, 4, 6, 12]), "width": (7, [1, 3, 8, 13])}
exports = True


class Embedding(nn.Module):
    def __init__(self, channels: int, patch: int) -> None:
        super().__init__()
        self.patch = patch
        self.project = nn.Conv2d(channels, 8, patch, stride=patch)

    def forward(self, image: Tensor) -> tuple[Tensor, tuple[int, int]]:
        height, width = image.shape[-2:]
        if width % self.patch != 0:
            image = F.pad(image, (0, self.patch - width % self.patch))
        if height % self.patch != 0:
            image = F.pad(image, (0, 0, 0, self.patch - height % self.patch))
        patches = self.project(image)
        return patches.flatten(2).transpose(1, 2), (patches.shape[2], patches.shape[3])


class Backbone(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fine, self.coarse = Embedding(3, 4), Embedding(8, 2)

    def forward(self, image: Tensor) -> Tensor:
        tokens, (rows, columns) = self.fine(image)
        tokens, _ = self.coarse(tokens.transpose(1, 2).reshape(-1, 8, rows, columns))
        return tokens


def model() -> Backbone:
    torch.manual_seed(0)
    return Backbone()


def inputs(batch: int, height: int, width: int) -> tuple[Tensor, ...]:
    torch.manual_seed(batch + height + width)
    return (torch.randn(batch, 3, height, width),)
