"""Each step looks at all states before it: the list of states is stacked inside the loop."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"signal": "batch steps 4"}
sizes = {"batch": (2, [1, 3]), "steps": (4, [1, 2, 8])}
exports = True


class LooksBack(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(4, 4)
        self.query = nn.Linear(4, 4)

    def forward(self, signal: Tensor) -> Tensor:
        hidden = signal.new_zeros(signal.shape[0], 4)
        states = [hidden]
        for t in range(signal.shape[1]):
            memory = torch.stack(states, dim=1)
            scores = torch.einsum("bd,bnd->bn", self.query(hidden), memory)
            context = torch.einsum("bn,bnd->bd", scores.softmax(dim=-1), memory)
            hidden = self.cell(signal[:, t] + context, hidden)
            states.append(hidden)
        return torch.stack(states[1:], dim=1)


def model() -> nn.Module:
    torch.manual_seed(0)
    return LooksBack().eval()


def inputs(batch: int, steps: int) -> tuple[object, ...]:
    return (torch.randn(batch, steps, 4),)
