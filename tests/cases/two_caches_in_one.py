"""A transformers EncoderDecoderCache: one half grows with the target, the other is read where it was filled."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"hidden": "batch seq 8"}
dims |= {f"cache.self_attention_cache.0.{part}": "batch 2 past 4" for part in ("key", "value")}
dims |= {f"cache.cross_attention_cache.0.{part}": "batch 2 src 4" for part in ("key", "value")}
sizes = {"batch": (2, [1, 3]), "seq": (3, [1, 4]), "past": (5, [0, 1, 9]), "src": (6, [1, 8])}
exports = True


class TwoCaches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project, self.ask = nn.Linear(8, 24), nn.Linear(8, 8)

    def forward(self, hidden: Tensor, cache: Any) -> tuple[Tensor, Any]:
        query, key, value = self.project(hidden).unflatten(-1, (2, 12)).transpose(1, 2).chunk(3, dim=-1)
        pair = cache.self_attention_cache.update(key, value, 0)
        hidden = hidden + F.scaled_dot_product_attention(query, *pair).transpose(1, 2).flatten(2)
        assert cache.is_updated[0]
        read = cache.cross_attention_cache.layers[0]
        query = self.ask(hidden).unflatten(-1, (2, 4)).transpose(1, 2)
        return F.scaled_dot_product_attention(query, read.keys, read.values), cache


def model() -> nn.Module:
    torch.manual_seed(0)
    return TwoCaches().eval()


def inputs(batch: int, seq: int, past: int, src: int) -> tuple[object, ...]:
    from transformers import DynamicCache, EncoderDecoderCache

    halves = []
    for length in (past, src):
        halves.append(DynamicCache())
        halves[-1].update(torch.randn(batch, 2, length, 4), torch.randn(batch, 2, length, 4), 0)
    return torch.randn(batch, seq, 8), EncoderDecoderCache(*halves)
