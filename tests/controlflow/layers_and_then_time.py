"""A loop over layers around a loop over time: each layer reads what the layer before it collected."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"signal": "batch steps 4"}
sizes = {"batch": (2, [1, 3]), "steps": (4, [1, 2, 7])}
exports = True


class DeepRecurrence(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cells = nn.ModuleList(nn.RNNCell(4, 4) for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(4) for _ in range(2))

    def forward(self, signal: Tensor) -> tuple[Tensor, Tensor]:
        layer_input = signal
        last = []
        for cell, norm in zip(self.cells, self.norms):
            hidden = torch.zeros(signal.shape[0], 4)
            outputs = []
            for t in range(layer_input.shape[1]):
                hidden = cell(layer_input[:, t], hidden)
                outputs.append(hidden)
            layer_input = norm(torch.stack(outputs, dim=1)) + layer_input
            last.append(hidden)
        return layer_input, torch.stack(last)


def model() -> nn.Module:
    torch.manual_seed(0)
    return DeepRecurrence().eval()


def inputs(batch: int, steps: int) -> tuple[object, ...]:
    return (torch.randn(batch, steps, 4),)
