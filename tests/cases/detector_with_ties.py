"""Scores of an empty picture tie: which boxes come first is left open by PyTorch, and the lowest index is right."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"picture": "1 3 height width"}
sizes = {"height": (6, [4, 9, 12]), "width": (8, [4, 7, 12])}
exports = True


class Detector(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.score, self.box = nn.Conv2d(3, 8, 3, 1, 1), nn.Conv2d(8, 1, 1), nn.Conv2d(8, 4, 1)

    def forward(self, picture: Tensor) -> tuple[Tensor, Tensor]:
        features = self.body(picture)
        scores, boxes = self.score(features).flatten(), self.box(features).flatten(2)[0].t()
        height, width = picture.shape[-2:]
        corners = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
        corner = torch.stack(corners, -1).reshape(-1, 2).float() * 8
        order = torch.argsort(scores, descending=True)[:5]
        return (boxes + torch.cat([corner, corner], -1))[order], scores[order]


def model() -> nn.Module:
    torch.manual_seed(0)
    return Detector().eval()


def inputs(height: int, width: int) -> tuple[object, ...]:
    return (torch.randn(1, 3, height, width),)
