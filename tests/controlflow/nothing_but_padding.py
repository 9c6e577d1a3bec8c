"""A batch that is all padding skips the encoder and gets a learned answer."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"tokens": "batch seq"}
sizes = {"batch": (2, [1, 3]), "seq": (6, [1, 2, 11])}
exports = True


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(12, 6, padding_idx=0)
        self.mix = nn.Linear(6, 6)
        self.nothing = nn.Parameter(torch.randn(6))

    def forward(self, tokens: Tensor) -> Tensor:
        padding = tokens.eq(0)
        if padding.all():
            return self.nothing.tanh().expand(tokens.shape[0], -1)
        hidden = self.mix(self.words(tokens)).masked_fill(padding.unsqueeze(-1), -1e4)
        return hidden.amax(dim=1)


def model() -> nn.Module:
    torch.manual_seed(0)
    return Encoder().eval()


def inputs(batch: int, seq: int) -> tuple[object, ...]:
    tokens = torch.randint(1, 12, (batch, seq))
    tokens[:, (seq + 1) // 2 :] = 0
    return (tokens,)


def empty(batch: int, seq: int) -> tuple[object, ...]:
    return (torch.zeros(batch, seq, dtype=torch.int64),)


sides = (inputs, empty)
