"""One argument, a dictionary of tensors: mean of the embeddings that the mask keeps."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"example.words": "batch seq", "example.weights": "batch seq"}
sizes = {"batch": (3, [1, 4]), "seq": (6, [1, 2, 9])}
exports = True


class DictInput(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(16, 5)

    def forward(self, example: dict[str, Tensor]) -> Tensor:
        weights = example["weights"].unsqueeze(-1)
        total = (self.embedding(example["words"]) * weights).sum(dim=1)
        return total / weights.sum(dim=1).clamp(min=0.1)


def model() -> nn.Module:
    torch.manual_seed(0)
    return DictInput().eval()


def inputs(batch: int, seq: int) -> tuple[object, ...]:
    return ({"words": torch.randint(0, 16, (batch, seq)), "weights": torch.rand(batch, seq)},)
