"""A likelihood with gamma functions, and others that ONNX has no operator for."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"counts": "batch n"}
sizes = {"batch": (2, [1, 3]), "n": (5, [1, 8])}
exports = True


class Likelihood(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.shape = nn.Parameter(torch.tensor(2.5))

    def forward(self, counts: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        total = counts + self.shape
        likelihood = torch.lgamma(total) - torch.lgamma(counts + 1) - torch.lgamma(self.shape)
        slope = torch.digamma(total) - torch.polygamma(1, total)
        return likelihood, slope, torch.erfinv((counts / 20).tanh()) + torch.hypot(counts, total)


def model() -> nn.Module:
    torch.manual_seed(0)
    return Likelihood().eval()


def inputs(batch: int, n: int) -> tuple[object, ...]:
    return (torch.rand(batch, n) * 12,)
