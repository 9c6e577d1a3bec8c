"""Two outputs in a NamedTuple: fields are names of results."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

dims = {"sentence": "batch seq"}
sizes = {"batch": (3, [1, 2]), "seq": (5, [1, 8])}
exports = True


class Tagged(NamedTuple):
    tags: Tensor
    summary: Tensor


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(15, 6)
        self.tags = nn.Linear(6, 4)

    def forward(self, sentence: Tensor) -> Tagged:
        embedded = self.embedding(sentence)
        return Tagged(tags=self.tags(embedded).log_softmax(dim=-1), summary=embedded.mean(dim=1))


def model() -> nn.Module:
    torch.manual_seed(0)
    return Tagger().eval()


def inputs(batch: int, seq: int) -> tuple[object, ...]:
    return (torch.randint(0, 15, (batch, seq)),)
