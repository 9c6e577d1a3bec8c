"""`zip` of two tensors that were turned so that time comes first."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"inputs_seen": "batch time 3", "gates": "batch time 5"}
sizes = {"batch": (2, [1, 3]), "time": (5, [1, 2, 10])}
exports = True


class GatedStreams(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lift = nn.Linear(3, 5)

    def forward(self, inputs_seen: Tensor, gates: Tensor) -> Tensor:
        lifted = self.lift(inputs_seen).transpose(0, 1)
        state = torch.zeros_like(lifted[0])
        outputs = []
        for value, gate in zip(lifted, gates.transpose(0, 1)):
            keep = torch.sigmoid(gate)
            state = keep * state + (1 - keep) * value
            outputs.append(state)
        return torch.stack(outputs).transpose(0, 1)


def model() -> nn.Module:
    torch.manual_seed(0)
    return GatedStreams().eval()


def inputs(batch: int, time: int) -> tuple[object, ...]:
    return torch.randn(batch, time, 3), torch.randn(batch, time, 5)
