"""The loop runs to the longest of the given lengths, which is a value; shorter rows keep their state."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"signal": "batch time 3", "lengths": "batch"}
sizes = {"batch": (3, [1, 4]), "time": (6, [1, 2, 9])}
exports = True


class PackedByHand(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(3, 4)

    def forward(self, signal: Tensor, lengths: Tensor) -> Tensor:
        hidden = torch.zeros(signal.shape[0], 4)
        for t in range(int(lengths.max())):
            following = self.cell(signal[:, t], hidden)
            alive = (lengths > t).unsqueeze(-1)
            hidden = torch.where(alive, following, hidden)
        return hidden


def model() -> nn.Module:
    torch.manual_seed(0)
    return PackedByHand().eval()


def inputs(batch: int, time: int) -> tuple[object, ...]:
    return torch.randn(batch, time, 3), torch.randint(1, time + 1, (batch,))


def full(batch: int, time: int) -> tuple[object, ...]:
    return torch.randn(batch, time, 3), torch.full((batch,), time)


sides = (inputs, full)
