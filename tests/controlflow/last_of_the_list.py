"""Only the last entry of the collected list is used: `outputs[-1]` after the loop."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"tokens": "batch seq"}
sizes = {"batch": (2, [1, 3]), "seq": (6, [1, 2, 10])}
exports = True


class LastState(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(13, 5)
        self.cell = nn.GRUCell(5, 5)
        self.head = nn.Linear(5, 2)

    def forward(self, tokens: Tensor) -> Tensor:
        embedded = self.words(tokens)
        hidden = embedded.new_zeros(tokens.shape[0], 5)
        outputs = []
        for t in range(embedded.size(1)):
            hidden = self.cell(embedded[:, t], hidden)
            outputs.append(self.head(hidden))
        return outputs[-1].softmax(dim=-1)


def model() -> nn.Module:
    torch.manual_seed(0)
    return LastState().eval()


def inputs(batch: int, seq: int) -> tuple[object, ...]:
    return (torch.randint(0, 13, (batch, seq)),)
