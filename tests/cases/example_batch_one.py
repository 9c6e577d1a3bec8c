"""An image classifier shown one image: a size of 1 in the example must not become a constant."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"photo": "batch 3 18 18"}
sizes = {"batch": (1, [2, 3, 9])}
exports = True


class SmallClassifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 5, 3, stride=2), nn.BatchNorm2d(5), nn.SiLU(), nn.AdaptiveAvgPool2d(1))
        self.classes = nn.Linear(5, 7)

    def forward(self, photo: Tensor) -> Tensor:
        return self.classes(self.stem(photo).flatten(start_dim=1)).softmax(dim=-1)


def model() -> nn.Module:
    torch.manual_seed(0)
    return SmallClassifier().eval()


def inputs(batch: int) -> tuple[object, ...]:
    return (torch.randn(batch, 3, 18, 18),)
