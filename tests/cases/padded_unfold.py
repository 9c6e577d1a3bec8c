"""The 3 x 3 surroundings of every pixel by padding and unfolding, folded back into an image."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"image": "batch 2 height width"}
sizes = {"batch": (2, [1, 3]), "height": (6, [4, 11]), "width": (8, [5, 9])}
exports = True


class LocalMixing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Linear(18, 4)

    def forward(self, image: Tensor) -> Tensor:
        batch, _, height, width = image.shape
        surroundings = F.unfold(F.pad(image, (1, 1, 1, 1), mode="reflect"), kernel_size=3)
        return self.mix(surroundings.mT).mT.reshape(batch, 4, height, width)


def model() -> nn.Module:
    torch.manual_seed(0)
    return LocalMixing().eval()


def inputs(batch: int, height: int, width: int) -> tuple[object, ...]:
    return (torch.randn(batch, 2, height, width),)
