"""scaled_dot_product_attention on tensors with three axes, a mask for each batch entry."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"query": "batch seq 8", "memory": "batch mem 8", "seen": "batch seq mem"}
sizes = {"batch": (3, [1, 2]), "seq": (5, [1, 8]), "mem": (4, [1, 7])}
exports = True


class WithoutHeads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(8, 8, bias=False)

    def forward(self, query: Tensor, memory: Tensor, seen: Tensor) -> Tensor:
        key = self.project(memory)
        masked = F.scaled_dot_product_attention(query, key, memory, attn_mask=seen)
        return masked + F.scaled_dot_product_attention(query, key, memory, is_causal=True, scale=0.5)


def model() -> nn.Module:
    torch.manual_seed(0)
    return WithoutHeads().eval()


def inputs(batch: int, seq: int, mem: int) -> tuple[object, ...]:
    seen = torch.rand(batch, seq, mem) > 0.4
    seen[..., 0] = True
    return torch.randn(batch, seq, 8), torch.randn(batch, mem, 8), seen
