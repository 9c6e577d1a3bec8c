"""Attention scaled by the logarithm of the length and averaged over the batch, in numpy's own scalars."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

dims = {"query": "batch seq 8", "key": "batch memory 8"}
sizes = {"batch": (2, [1, 3]), "seq": (5, [1, 9]), "memory": (7, [2, 40])}
exports = True


class LogScaled(nn.Module):
    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        scale = np.log2(key.shape[1]) / np.sqrt(np.float32(query.shape[-1]))
        share = np.float32(1.0) / np.float32(query.shape[0])
        return torch.softmax(query @ key.transpose(1, 2) * float(scale), dim=-1) @ key * float(share)


def model() -> nn.Module:
    return LogScaled().eval()


def inputs(batch: int, seq: int, memory: int) -> tuple[object, ...]:
    return torch.randn(batch, seq, 8), torch.randn(batch, memory, 8)
