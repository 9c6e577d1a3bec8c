"""Each side of a branch returns a dict with the same keys, filled in two ways."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"tokens": "batch seq 4"}
sizes = {"batch": (2, [1, 3]), "seq": (5, [1, 6, 7, 15])}
exports = True


class Pooler(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.score = nn.Linear(4, 1)
        self.mix = nn.Linear(4, 4)

    def forward(self, tokens: Tensor) -> dict[str, Tensor]:
        hidden = self.mix(tokens).relu()
        if tokens.shape[1] > 6:
            weights = self.score(hidden).softmax(dim=1)
            return {"pooled": (weights * hidden).sum(dim=1), "weights": weights.squeeze(-1)}
        uniform = torch.full_like(hidden[..., 0], 1.0) / tokens.shape[1]
        return {"pooled": hidden.mean(dim=1), "weights": uniform}


def model() -> nn.Module:
    torch.manual_seed(0)
    return Pooler().eval()


def inputs(batch: int, seq: int) -> tuple[object, ...]:
    return (torch.randn(batch, seq, 4),)
