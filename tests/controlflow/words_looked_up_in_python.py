"""Ids are taken out as a Python list and looked up in a dict: no operator does that."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"ids": "seq"}
sizes = {"seq": (4, [1, 2, 9])}
exports = False  # values become keys of a dict


class PythonLookup(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weights = {0: 0.5, 1: 2.0, 2: -1.0}
        self.scale = nn.Parameter(torch.tensor(3.0))

    def forward(self, ids: Tensor) -> Tensor:
        weights = [self.weights[word] for word in ids.tolist()]
        return torch.tensor(weights) * self.scale


def model() -> nn.Module:
    torch.manual_seed(0)
    return PythonLookup().eval()


def inputs(seq: int) -> tuple[object, ...]:
    return (torch.randint(0, 3, (seq,)),)
