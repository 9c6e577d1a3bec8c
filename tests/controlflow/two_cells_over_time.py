"""Two layers of cells inside the loop over time, with their states in a list."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"signal": "batch steps 3"}
sizes = {"batch": (2, [1, 3]), "steps": (4, [1, 2, 7])}
exports = True


class TwoLayers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cells = nn.ModuleList([nn.GRUCell(3, 4), nn.GRUCell(4, 4)])

    def forward(self, signal: Tensor) -> tuple[Tensor, Tensor]:
        states = [signal.new_zeros(signal.shape[0], 4) for _ in self.cells]
        outputs = []
        for t in range(signal.shape[1]):
            x = signal[:, t]
            for layer, cell in enumerate(self.cells):
                states[layer] = cell(x, states[layer])
                x = states[layer]
            outputs.append(x)
        return torch.stack(outputs, dim=1), torch.stack(states)


def model() -> nn.Module:
    torch.manual_seed(0)
    return TwoLayers().eval()


def inputs(batch: int, steps: int) -> tuple[object, ...]:
    return (torch.randn(batch, steps, 3),)
