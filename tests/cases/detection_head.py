"""Boxes from three levels of features: the number of anchors is a sum of products of rounded quotients."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"images": "batch 3 height width"}
sizes = {"batch": (2, [1, 3]), "height": (40, [16, 57]), "width": (48, [24, 33])}
exports = True


def halve(channels: int, out: int) -> nn.Module:
    return nn.Sequential(nn.Conv2d(channels, out, 3, stride=2, padding=1), nn.BatchNorm2d(out), nn.SiLU())


class DetectionHead(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(halve(3, 4), halve(4, 6))
        self.deeper = nn.ModuleList([halve(6, 6), halve(6, 6)])
        self.boxes, self.classes = nn.Conv2d(6, 4, 1), nn.Conv2d(6, 3, 1)

    def features(self, images: Tensor) -> list[Tensor]:
        levels = [self.stem(images)]
        for stage in self.deeper:
            levels.append(stage(levels[-1]))
        merged = [levels[-1]]
        for fine in levels[-2::-1]:
            merged.insert(0, fine + F.interpolate(merged[0], size=fine.shape[-2:], mode="nearest"))
        return merged

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        boxes, scores = [], []
        for level, feature in enumerate(self.features(images)):
            stride = 4 * 2**level
            rows, columns = feature.shape[-2:]
            y, x = torch.meshgrid(torch.arange(rows) + 0.5, torch.arange(columns) + 0.5, indexing="ij")
            centres = torch.stack([x, y], dim=-1).view(-1, 2) * stride
            before, after = self.boxes(feature).exp().flatten(2).mT.chunk(2, dim=-1)
            boxes.append(torch.cat([centres - before * stride, centres + after * stride], dim=-1))
            scores.append(self.classes(feature).flatten(2).mT.sigmoid())
        return torch.cat(boxes, dim=1), torch.cat(scores, dim=1)


def model() -> nn.Module:
    torch.manual_seed(0)
    return DetectionHead().eval()


def inputs(batch: int, height: int, width: int) -> tuple[object, ...]:
    return (torch.randn(batch, 3, height, width),)
