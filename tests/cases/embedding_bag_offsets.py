"""An embedding bag with offsets: how many words a bag has stands in the values."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"words": "total", "offsets": "bags"}
sizes = {"total": (9, [1, 5, 20]), "bags": (4, [1, 2, 7])}
exports = True


class BagOfWords(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bags = nn.EmbeddingBag(13, 5, mode="mean")
        self.classes = nn.Linear(5, 3)

    def forward(self, words: Tensor, offsets: Tensor) -> Tensor:
        return self.classes(self.bags(words, offsets))


def model() -> nn.Module:
    torch.manual_seed(0)
    return BagOfWords().eval()


def inputs(total: int, bags: int) -> tuple[object, ...]:
    return torch.randint(0, 13, (total,)), torch.arange(bags) * total // bags
