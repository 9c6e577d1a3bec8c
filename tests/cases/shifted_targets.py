"""The likelihood of the next token: one input is longer by one than the other."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"predictions": "batch n 7", "tokens": "batch n+1"}
sizes = {"batch": (3, [1, 2]), "n": (4, [1, 9])}
exports = True


class NextTokenLikelihood(nn.Module):
    def forward(self, predictions: Tensor, tokens: Tensor) -> Tensor:
        following = tokens[:, 1:, None]
        return predictions.log_softmax(dim=2).gather(2, following)[..., 0].sum(dim=1)


def model() -> nn.Module:
    torch.manual_seed(0)
    return NextTokenLikelihood().eval()


def inputs(batch: int, n: int) -> tuple[object, ...]:
    return torch.randn(batch, n, 7), torch.randint(0, 7, (batch, n + 1))
