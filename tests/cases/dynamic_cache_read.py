"""A transformers DynamicCache as an input: its tensors are attributes of layers, not arguments."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

dims = {"query": "batch 5", "cache.0.key": "batch 2 past 5", "cache.0.value": "batch 2 past 5"}
sizes = {"batch": (3, [1, 2]), "past": (6, [1, 4, 10])}
exports = True


class CacheReader(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(5, 5)

    def forward(self, query: Tensor, cache: Any) -> Tensor:
        layer = cache.layers[0]
        scores = torch.einsum("bd,bhpd->bhp", self.project(query), layer.keys)
        return torch.einsum("bhp,bhpd->bhd", scores.softmax(dim=-1), layer.values)


def model() -> nn.Module:
    torch.manual_seed(0)
    return CacheReader().eval()


def inputs(batch: int, past: int) -> tuple[object, ...]:
    from transformers import DynamicCache

    cache = DynamicCache()
    cache.update(torch.randn(batch, 2, past, 5), torch.randn(batch, 2, past, 5), 0)
    return torch.randn(batch, 5), cache
