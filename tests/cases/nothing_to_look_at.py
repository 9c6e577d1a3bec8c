"""Attention over lengths that may be 0: a query that may look at no key gets zeros in PyTorch."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"query": "batch 2 seq 4", "memory": "batch 2 mem 4", "lengths": "batch"}
sizes = {"batch": (3, [1, 4]), "seq": (5, [1, 6]), "mem": (4, [1, 7])}
exports = True


class MaybeNothing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(8, 5)

    def forward(self, query: Tensor, memory: Tensor, lengths: Tensor) -> Tensor:
        seen = torch.arange(memory.shape[2]) < lengths.unsqueeze(1)
        mixed = F.scaled_dot_product_attention(query, memory, memory, attn_mask=seen[:, None, None])
        return self.out(mixed.transpose(1, 2).flatten(2))


def model() -> nn.Module:
    torch.manual_seed(0)
    return MaybeNothing().eval()


def inputs(batch: int, seq: int, mem: int) -> tuple[object, ...]:
    return torch.randn(batch, 2, seq, 4), torch.randn(batch, 2, mem, 4), torch.arange(batch) % (mem + 1)
