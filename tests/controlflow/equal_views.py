"""Query and memory may be the same values: `torch.equal` decides whether the diagonal is hidden."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"query": "batch seq 4", "memory": "batch seq 4"}
sizes = {"batch": (2, [1]), "seq": (5, [1, 2, 9])}
exports = True


class CrossOrSelf(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(4, 4)
        self.memory = nn.Linear(4, 4)

    def forward(self, query: Tensor, memory: Tensor) -> Tensor:
        scores = self.query(query) @ self.memory(memory).transpose(1, 2)
        if torch.equal(query, memory):
            itself = torch.eye(query.shape[1], dtype=torch.bool)
            scores = scores.masked_fill(itself, -1e4)
        return scores.softmax(dim=-1) @ memory


def model() -> nn.Module:
    torch.manual_seed(0)
    return CrossOrSelf().eval()


def inputs(batch: int, seq: int) -> tuple[object, ...]:
    return torch.randn(batch, seq, 4), torch.randn(batch, seq, 4)


def same(batch: int, seq: int) -> tuple[object, ...]:
    view = torch.randn(batch, seq, 4)
    return view, view.clone()


sides = (inputs, same)
