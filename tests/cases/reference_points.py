"""The centres of a feature map's cells by numpy.mgrid, in parts of its height and width, as detectors have them."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

dims = {"image": "batch 3 height width"}
sizes = {"batch": (2, [1, 3]), "height": (12, [3, 17, 30]), "width": (16, [4, 9, 33])}
exports = True


class ReferencePoints(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cells = nn.Conv2d(3, 2, 3, stride=2, padding=1)

    def forward(self, image: Tensor) -> Tensor:
        cells = self.cells(image)
        rows, columns = cells.shape[2:]
        down, along = np.mgrid[0:rows, 0:columns]
        centres = np.stack([(along.ravel() + 0.5) / columns, (down.ravel() + 0.5) / rows], axis=-1)
        return cells.flatten(2).transpose(1, 2).sigmoid() + torch.from_numpy(centres.astype(np.float32))


def model() -> nn.Module:
    torch.manual_seed(0)
    return ReferencePoints().eval()


def inputs(batch: int, height: int, width: int) -> tuple[object, ...]:
    return (torch.randn(batch, 3, height, width),)
