"""One attention step with cached keys and values as plain tensors: the mask is as long as past and present."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {
    "tokens": "batch seq",
    "mask": "batch past+seq",
    "cached_keys": "batch 3 past 4",
    "cached_values": "batch 3 past 4",
}
sizes = {"batch": (2, [1, 4]), "seq": (3, [1, 5]), "past": (7, [1, 11])}
exports = True


class CachedAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(30, 12)
        self.project = nn.Linear(12, 36)
        self.vocabulary = nn.Linear(12, 30)

    def heads(self, flat: Tensor) -> Tensor:
        return flat.view(flat.shape[0], flat.shape[1], 3, 4).transpose(1, 2)

    def forward(
        self, tokens: Tensor, mask: Tensor, cached_keys: Tensor, cached_values: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        query, key, value = map(self.heads, self.project(self.embedding(tokens)).chunk(3, dim=-1))
        keys = torch.cat([cached_keys, key], dim=2)
        values = torch.cat([cached_values, value], dim=2)
        seq, total = query.shape[2], keys.shape[2]
        seen = torch.ones(seq, total, dtype=torch.bool).tril(total - seq)
        mixed = F.scaled_dot_product_attention(query, keys, values, attn_mask=seen & mask.bool()[:, None, None])
        return self.vocabulary(mixed.transpose(1, 2).flatten(2)), keys, values


def model() -> nn.Module:
    torch.manual_seed(0)
    return CachedAttention().eval()


def inputs(batch: int, seq: int, past: int) -> tuple[object, ...]:
    mask = torch.ones(batch, past + seq, dtype=torch.int64)
    mask[0, : past // 2] = 0
    cached = torch.randn(2, batch, 3, past, 4)
    return torch.randint(0, 30, (batch, seq)), mask, cached[0].clone(), cached[1].clone()
