"""A batch of one has no statistics of its own and takes the stored ones."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"features": "batch 5"}
sizes = {"batch": (4, [1, 2, 9])}
exports = True


class BatchStatistics(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.randn(5))
        self.register_buffer("variance", torch.rand(5) + 0.5)
        self.head = nn.Linear(5, 3)

    def forward(self, features: Tensor) -> Tensor:
        if features.shape[0] == 1:
            mean, variance = self.mean, self.variance
        else:
            mean, variance = features.mean(dim=0), features.var(dim=0, unbiased=True)
        normal = (features - mean) / (variance + 1e-2).sqrt()
        return self.head(normal)


def model() -> nn.Module:
    torch.manual_seed(0)
    return BatchStatistics().eval()


def inputs(batch: int) -> tuple[object, ...]:
    return (torch.randn(batch, 5) * 2,)
