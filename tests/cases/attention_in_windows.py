"""Attention inside windows that have an axis of their own: five axes, and a learned bias that broadcasts over them."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"patches": "batch windows 4 8"}
sizes = {"batch": (2, [1, 3]), "windows": (6, [1, 5])}
exports = True


class InWindows(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(8, 24)
        self.bias = nn.Parameter(torch.randn(2, 4, 4))

    def forward(self, patches: Tensor) -> Tensor:
        batch, windows, tokens, _ = patches.shape
        heads = self.project(patches).reshape(batch, windows, tokens, 3, 2, 4).permute(3, 0, 1, 4, 2, 5)
        mixed = F.scaled_dot_product_attention(*heads.unbind(0), attn_mask=self.bias)
        return mixed.transpose(2, 3).reshape(batch, windows * tokens, 8)


def model() -> nn.Module:
    torch.manual_seed(0)
    return InWindows().eval()


def inputs(batch: int, windows: int) -> tuple[object, ...]:
    return (torch.randn(batch, windows, 4, 8),)
