"""A model in float64: numbers that are float32 attributes in ONNX, or that torch rounds, keep all their digits."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

dims = {"x": "batch seq 8"}
sizes = {"batch": (2, [1, 3]), "seq": (5, [1, 2, 9])}
exports = True


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, activation="gelu")
        self.norm = nn.BatchNorm1d(8)
        self.act = nn.LeakyReLU(0.01)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        y = self.act(self.norm(self.layer(x).transpose(1, 2)))
        gates = 0.1 - F.softplus(y, beta=1.3, threshold=5.1), F.celu(y, 0.7), F.hardtanh(y, -0.3, 0.7)
        return y.clamp(-0.1, 0.3), *gates, F.threshold(y, 0.1, 20.3), torch.addcmul(y, y, y, value=0.1)


def model() -> nn.Module:
    torch.manual_seed(0)
    return Block().double().eval()


def inputs(batch: int, seq: int) -> tuple[object, ...]:
    return (torch.randn(batch, seq, 8, dtype=torch.float64),)
