"""An operator that writes into one of its arguments and returns nothing."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"values": "batch n"}
sizes = {"batch": (3, [1, 2]), "n": (5, [1, 12])}
exports = True


@torch.library.custom_op("anyshape_cases::accumulate_", mutates_args=("total",))
def accumulate_(values: Tensor, total: Tensor) -> None:
    total.add_(values.cumsum(dim=1))
    total[:, 0] = 1.0


class ChangesArgument(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Linear(1, 1)

    def forward(self, values: Tensor) -> Tensor:
        total = torch.zeros_like(values)
        accumulate_(values, total)
        accumulate_(values=total * 2, total=total)
        return self.scale(total.unsqueeze(-1)).squeeze(-1)


def model() -> nn.Module:
    torch.manual_seed(0)
    return ChangesArgument().eval()


def inputs(batch: int, n: int) -> tuple[object, ...]:
    return (torch.randn(batch, n),)
