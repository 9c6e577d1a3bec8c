"""Six query heads share two keys, see a sliding window of the past, and like what is near (ALiBi)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"query": "batch 6 seq 4", "key": "batch 2 total 4", "value": "batch 2 total 4"}
sizes = {"batch": (2, [1, 3]), "seq": (5, [1, 7]), "total": (8, [2, 11])}
exports = True


class GroupedSliding(nn.Module):
    slopes: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("slopes", 2.0 ** -torch.arange(1.0, 7.0))

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        own = torch.arange(query.shape[2]).unsqueeze(1)
        distance = own - torch.arange(key.shape[2])
        bias = -self.slopes[:, None, None] * distance.abs()
        bias = bias.masked_fill((distance < 0) | (distance >= 3), float("-inf"))
        return F.scaled_dot_product_attention(query, key, value, attn_mask=bias, enable_gqa=True)


def model() -> nn.Module:
    return GroupedSliding().eval()


def inputs(batch: int, seq: int, total: int) -> tuple[object, ...]:
    return torch.randn(batch, 6, seq, 4), torch.randn(batch, 2, total, 4), torch.randn(batch, 2, total, 4)
