"""A transformers StaticCache: its room is an axis, and how much of it is filled is a tensor that grows in place."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"hidden": "batch seq 8", "cache.0.key": "batch 2 room 4", "cache.0.value": "batch 2 room 4"}
sizes = {"batch": (2, [1, 3]), "seq": (3, [1, 4]), "room": (12, [7, 16])}
exports = True


class StaticRoom(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(8, 24)

    def forward(self, hidden: Tensor, cache: Any) -> tuple[Tensor, Any]:
        before = cache.get_seq_length()
        own = torch.arange(hidden.shape[1]) + before
        query, key, value = self.project(hidden).unflatten(-1, (2, 12)).transpose(1, 2).chunk(3, dim=-1)
        keys, values = cache.update(key, value, 0)
        seen = torch.arange(keys.shape[2]) <= own.unsqueeze(1)
        return F.scaled_dot_product_attention(query, keys, values, attn_mask=seen), cache


def model() -> nn.Module:
    torch.manual_seed(0)
    return StaticRoom().eval()


def inputs(batch: int, seq: int, room: int) -> tuple[object, ...]:
    from transformers import LlamaConfig, StaticCache

    config = LlamaConfig(hidden_size=8, num_attention_heads=2, num_key_value_heads=2, num_hidden_layers=1)
    cache = StaticCache(config=config, max_cache_len=room)
    cache.early_initialization(batch, 2, 4, torch.float32, torch.device("cpu"))
    cache.update(torch.randn(batch, 2, 3, 4), torch.randn(batch, 2, 3, 4), 0)
    return torch.randn(batch, seq, 8), cache
