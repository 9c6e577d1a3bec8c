"""Short texts go through one submodule and long ones through another, which has other weights."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"tokens": "batch seq"}
sizes = {"batch": (2, [1, 3]), "seq": (6, [1, 8, 9, 24])}
exports = True


class TwoEncoders(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(20, 8)
        self.short = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.long = nn.GRU(8, 8, batch_first=True)
        self.head = nn.Linear(8, 3)

    def forward(self, tokens: Tensor) -> Tensor:
        hidden = self.words(tokens)
        if tokens.shape[1] <= 8:
            hidden = self.short(hidden)
        else:
            hidden, _ = self.long(hidden)
        return self.head(hidden[:, -1])


def model() -> nn.Module:
    torch.manual_seed(0)
    return TwoEncoders().eval()


def inputs(batch: int, seq: int) -> tuple[object, ...]:
    return (torch.randint(0, 20, (batch, seq)),)
