"""A bias for each bucket of distances, near ones apart and far ones together, as in T5."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

dims = {"query": "batch 2 seq 4", "key": "batch 2 mem 4"}
sizes = {"batch": (2, [1, 3]), "seq": (6, [1, 19]), "mem": (5, [1, 33])}
exports = True


class Bucketed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Embedding(12, 2)

    def bucket(self, distance: Tensor) -> Tensor:
        side = (distance > 0).long() * 6
        distance = distance.abs()
        far = 3 + (torch.log(distance.float() / 3) / math.log(16 / 3) * 3).long()
        return side + torch.where(distance < 3, distance, far.clamp(max=5))

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        distance = torch.arange(key.shape[2]) - torch.arange(query.shape[2]).unsqueeze(1)
        bias = self.bias(self.bucket(distance)).permute(2, 0, 1)
        return (query @ key.transpose(-1, -2) + bias).softmax(-1) @ key


def model() -> nn.Module:
    torch.manual_seed(0)
    return Bucketed().eval()


def inputs(batch: int, seq: int, mem: int) -> tuple[object, ...]:
    return torch.randn(batch, 2, seq, 4), torch.randn(batch, 2, mem, 4)
