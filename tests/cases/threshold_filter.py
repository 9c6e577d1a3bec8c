"""Boxes above a threshold, best first: how many come out depends on the values."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"boxes": "count 4", "scores": "count"}
sizes = {"count": (10, [3, 25])}
exports = True


class ThresholdFilter(nn.Module):
    def forward(self, boxes: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
        likely = scores > 0.4
        boxes, scores = boxes[likely], scores[likely]
        scores, order = scores.sort(descending=True)
        return boxes[order], scores


def model() -> nn.Module:
    torch.manual_seed(0)
    return ThresholdFilter().eval()


def inputs(count: int) -> tuple[object, ...]:
    return torch.randn(count, 4), torch.rand(count)
