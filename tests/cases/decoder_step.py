"""A decoder with a list of (key, value) pairs: the cache grows from empty, the mask covers past and present."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"ids": "batch seq", "mask": "batch past+seq", "positions": "batch seq"}
dims |= {f"cache.{layer}.{part}": "batch 2 past 4" for layer in range(2) for part in range(2)}
sizes = {"batch": (2, [1, 3]), "seq": (4, [1, 6]), "past": (5, [0, 1, 9])}
exports = True

Pair = tuple[Tensor, Tensor]


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.project, self.out = nn.LayerNorm(8), nn.Linear(8, 24), nn.Linear(8, 8)

    def forward(self, hidden: Tensor, past: Pair, visible: Tensor) -> tuple[Tensor, Pair]:
        batch, seq, _ = hidden.shape
        query, key, value = self.project(self.norm(hidden)).view(batch, seq, 3, 2, 4).permute(2, 0, 3, 1, 4)
        key, value = torch.cat([past[0], key], dim=2), torch.cat([past[1], value], dim=2)
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=visible)
        return hidden + self.out(mixed.transpose(1, 2).reshape(batch, seq, 8)), (key, value)


class DecoderStep(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(30, 8), nn.Embedding(32, 8)
        self.blocks = nn.ModuleList(Block() for _ in range(2))

    def forward(self, ids: Tensor, mask: Tensor, positions: Tensor, cache: list[Pair]) -> tuple[Tensor, list[Pair]]:
        slots = torch.arange(mask.shape[1])
        own = torch.arange(ids.shape[1]) + cache[0][0].shape[2]
        visible = (slots <= own[:, None]) & mask.bool()[:, None, None]
        hidden = self.words(ids) + self.places(positions)
        grown = []
        for block, past in zip(self.blocks, cache, strict=True):
            hidden, pair = block(hidden, past, visible)
            grown.append(pair)
        return hidden @ self.words.weight.T, grown


def model() -> nn.Module:
    torch.manual_seed(0)
    return DecoderStep().eval()


def inputs(batch: int, seq: int, past: int) -> tuple[object, ...]:
    cache = [(torch.randn(batch, 2, past, 4), torch.randn(batch, 2, past, 4)) for _ in range(2)]
    mask = torch.ones(batch, past + seq, dtype=torch.int64)
    return torch.randint(0, 30, (batch, seq)), mask, torch.arange(past, past + seq).repeat(batch, 1), cache
