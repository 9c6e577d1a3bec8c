"""`bool((ids == pad).any())` is kept in a variable and asked twice."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"ids": "batch seq"}
sizes = {"batch": (2, [1, 3]), "seq": (6, [1, 3, 12])}
exports = True


class Reader(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.pad = 0
        self.words = nn.Embedding(15, 8)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.head = nn.Linear(8, 2)

    def forward(self, ids: Tensor) -> Tensor:
        has_padding = bool((ids == self.pad).any())
        padding = (ids == self.pad) if has_padding else None
        hidden = self.words(ids)
        mixed, _ = self.attention(hidden, hidden, hidden, key_padding_mask=padding, need_weights=False)
        if has_padding:
            mixed = mixed * (ids != self.pad).unsqueeze(-1)
        return self.head(hidden + mixed)


def model() -> nn.Module:
    torch.manual_seed(0)
    return Reader().eval()


def inputs(batch: int, seq: int) -> tuple[object, ...]:
    return (torch.randint(1, 15, (batch, seq)),)


def padded(batch: int, seq: int) -> tuple[object, ...]:
    ids = torch.randint(1, 15, (batch, seq))
    ids[0, (seq + 1) // 2 :] = 0
    return (ids,)


sides = (inputs, padded)
