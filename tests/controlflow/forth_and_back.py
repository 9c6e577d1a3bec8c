"""One loop runs forth and one runs back over the same steps; both are joined."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"signal": "batch steps 3"}
sizes = {"batch": (2, [1, 3]), "steps": (5, [1, 2, 8])}
exports = True


class Bidirectional(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.forth = nn.GRUCell(3, 4)
        self.back = nn.GRUCell(3, 4)
        self.head = nn.Linear(8, 2)

    def forward(self, signal: Tensor) -> Tensor:
        batch, steps, _ = signal.shape
        hidden = torch.zeros(batch, 4)
        forward_states, backward_states = [], []
        for t in range(steps):
            hidden = self.forth(signal[:, t], hidden)
            forward_states.append(hidden)
        hidden = torch.zeros(batch, 4)
        for t in range(steps - 1, -1, -1):
            hidden = self.back(signal[:, t], hidden)
            backward_states.insert(0, hidden)
        both = torch.cat([torch.stack(forward_states, 1), torch.stack(backward_states, 1)], dim=-1)
        return self.head(both)


def model() -> nn.Module:
    torch.manual_seed(0)
    return Bidirectional().eval()


def inputs(batch: int, steps: int) -> tuple[object, ...]:
    return (torch.randn(batch, steps, 3),)
