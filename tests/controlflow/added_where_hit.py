"""Steps at the places that were hit, each with a part of its own; one that was not hit would change the result, too."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"x": "batch 4"}
sizes = {"batch": (3, [1, 5])}
exports = True


class Parts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleDict({f"part_{place}": nn.Linear(4, 4) for place in range(4)})

    def forward(self, x: Tensor) -> Tensor:
        total = x * 1
        for place in (x.sum(0) > 0).nonzero():
            total = total + self.parts[f"part_{place[0]}"](x)
            total.mul_(2)
        return total


def model() -> nn.Module:
    torch.manual_seed(0)
    return Parts().eval()


def inputs(batch: int) -> tuple[object, ...]:
    return (torch.randn(batch, 4),)


def always(batch: int) -> tuple[object, ...]:
    return (torch.rand(batch, 4),)


def never(batch: int) -> tuple[object, ...]:
    return (-torch.rand(batch, 4),)


sides = (inputs, always, never)
