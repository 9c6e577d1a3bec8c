"""A transformers DynamicCache of two layers that the model appends to and hands back."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {
    "hidden": "batch seq 8",
    "cache.0.key": "batch 2 past 4",
    "cache.0.value": "batch 2 past 4",
    "cache.1.key": "batch 2 past 4",
    "cache.1.value": "batch 2 past 4",
}
sizes = {"batch": (2, [1, 3]), "seq": (3, [1, 4]), "past": (5, [0, 1, 9])}
exports = True


class CacheGrows(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 24) for _ in range(2))

    def forward(self, hidden: Tensor, cache: Any) -> tuple[Tensor, Any]:
        for index, project in enumerate(self.layers):
            heads = project(hidden).unflatten(-1, (2, 12)).transpose(1, 2)
            query, key, value = heads.chunk(3, dim=-1)
            keys, values = cache.update(key, value, index)
            hidden = hidden + F.scaled_dot_product_attention(query, keys, values).transpose(1, 2).flatten(2)
        return hidden, cache


def model() -> nn.Module:
    torch.manual_seed(0)
    return CacheGrows().eval()


def inputs(batch: int, seq: int, past: int) -> tuple[object, ...]:
    from transformers import DynamicCache

    cache = DynamicCache()
    for index in range(2):
        cache.update(torch.randn(batch, 2, past, 4), torch.randn(batch, 2, past, 4), index)
    return torch.randn(batch, seq, 8), cache
