"""Boxes that no better box covers, chosen without a loop; how many remain depends on the values."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"boxes": "n 4", "scores": "n"}
sizes = {"n": (7, [1, 2, 15])}
exports = True


class Greedy(nn.Module):
    def forward(self, boxes: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
        order = scores.argsort(descending=True, stable=True)
        sorted_boxes = boxes[order]
        low = torch.maximum(sorted_boxes[:, None, :2], sorted_boxes[None, :, :2])
        high = torch.minimum(sorted_boxes[:, None, 2:], sorted_boxes[None, :, 2:])
        inner = (high - low).clamp(min=0).prod(-1)
        area = (sorted_boxes[:, 2:] - sorted_boxes[:, :2]).prod(-1)
        overlap = inner / (area[:, None] + area - inner)
        keep = ~(overlap > 0.4).triu(1).any(0)
        return sorted_boxes[keep], order[torch.where(keep)[0]]


def model() -> nn.Module:
    torch.manual_seed(0)
    return Greedy().eval()


def inputs(n: int) -> tuple[object, ...]:
    corner = torch.rand(n, 2) * 4
    return torch.cat([corner, corner + 1 + torch.rand(n, 2)], 1), torch.rand(n)
