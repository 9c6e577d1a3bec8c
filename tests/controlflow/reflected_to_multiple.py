"""An image is reflected to a multiple of 8 where it has to be, filtered, and cropped."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"image": "batch 3 height width"}
sizes = {"batch": (1, [2]), "height": (16, [13, 15, 21]), "width": (19, [16, 24])}
exports = True


class Denoiser(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(3, 8, 8, stride=8)
        self.up = nn.ConvTranspose2d(8, 3, 8, stride=8)

    def check_image_size(self, image: Tensor) -> Tensor:
        _, _, height, width = image.size()
        mod_height, mod_width = height % 8, width % 8
        if mod_height != 0:
            image = F.pad(image, (0, 0, 0, 8 - mod_height), mode="reflect")
        if mod_width != 0:
            image = F.pad(image, (0, 8 - mod_width, 0, 0), mode="reflect")
        return image

    def forward(self, image: Tensor) -> Tensor:
        height, width = image.shape[2:]
        padded = self.check_image_size(image)
        residual = self.up(self.down(padded).tanh())
        return (padded - residual)[:, :, :height, :width]


def model() -> nn.Module:
    torch.manual_seed(0)
    return Denoiser().eval()


def inputs(batch: int, height: int, width: int) -> tuple[object, ...]:
    return (torch.randn(batch, 3, height, width),)
