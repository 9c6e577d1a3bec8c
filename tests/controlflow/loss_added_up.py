"""A plain `0.0` becomes a tensor in the first step: a sum over the steps, divided by their number."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"predicted": "batch steps 3", "wanted": "batch steps"}
sizes = {"batch": (2, [1, 3]), "steps": (5, [1, 2, 9])}
exports = True


class StepLoss(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([0.5, 1.0, 2.0]))

    def forward(self, predicted: Tensor, wanted: Tensor) -> Tensor:
        total = 0.0
        steps = predicted.shape[1]
        for t in range(steps):
            likely = predicted[:, t].log_softmax(dim=-1) * self.weight
            total = total - likely.gather(1, wanted[:, t : t + 1]).mean()
        return total / steps


def model() -> nn.Module:
    torch.manual_seed(0)
    return StepLoss().eval()


def inputs(batch: int, steps: int) -> tuple[object, ...]:
    return torch.randn(batch, steps, 3), torch.randint(0, 3, (batch, steps))
