"""Attention with a learned bias by clipped distance: a table looked up over a square of two sizes."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"hidden": "batch seq 6"}
sizes = {"batch": (3, [1, 2]), "seq": (5, [1, 4, 11])}
exports = True


class RelativeBias(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(6, 18)
        self.bias = nn.Embedding(7, 2)

    def forward(self, hidden: Tensor) -> Tensor:
        batch, seq, _ = hidden.shape
        query, key, value = self.project(hidden).view(batch, seq, 3, 2, 3).unbind(dim=2)
        place = torch.arange(seq)
        distance = (place[None, :] - place[:, None]).clamp(-3, 3) + 3
        bias = self.bias(distance).permute(2, 0, 1).unsqueeze(0)
        heads = (part.transpose(1, 2) for part in (query, key, value))
        return F.scaled_dot_product_attention(*heads, attn_mask=bias).transpose(1, 2).flatten(2)


def model() -> nn.Module:
    torch.manual_seed(0)
    return RelativeBias().eval()


def inputs(batch: int, seq: int) -> tuple[object, ...]:
    return (torch.randn(batch, seq, 6),)
