"""A decoder looks at the whole memory in each step; its number of steps is another input's size."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"memory": "batch seq 6", "targets": "batch steps"}
sizes = {"batch": (2, [1, 3]), "seq": (5, [1, 8]), "steps": (4, [1, 2, 7])}
exports = True


class AttentionDecoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(11, 4)
        self.cell = nn.GRUCell(10, 6)
        self.head = nn.Linear(12, 11)

    def forward(self, memory: Tensor, targets: Tensor) -> Tensor:
        embedded = self.words(targets)
        hidden = memory.mean(dim=1)
        context = torch.zeros_like(hidden)
        logits = []
        for t in range(targets.shape[1]):
            hidden = self.cell(torch.cat([embedded[:, t], context], dim=-1), hidden)
            weights = torch.bmm(memory, hidden.unsqueeze(-1)).softmax(dim=1)
            context = (weights * memory).sum(dim=1)
            logits.append(self.head(torch.cat([hidden, context], dim=-1)))
        return torch.stack(logits, dim=1)


def model() -> nn.Module:
    torch.manual_seed(0)
    return AttentionDecoder().eval()


def inputs(batch: int, seq: int, steps: int) -> tuple[object, ...]:
    return torch.randn(batch, seq, 6), torch.randint(0, 11, (batch, steps))
