"""A length below 3 is refused by an `assert`; the branch behind it stays in the file."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"path": "batch points 2"}
sizes = {"batch": (2, [1, 3]), "points": (6, [3, 10, 11, 25])}
exports = True


class Curvature(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.readout = nn.Linear(2, 4)

    def forward(self, path: Tensor) -> Tensor:
        points = path.shape[1]
        assert points >= 3, f"a path needs 3 points, not {points}"
        bend = path[:, 2:] - 2 * path[:, 1:-1] + path[:, :-2]
        if points > 10:
            bend = bend / bend.norm(dim=-1, keepdim=True).clamp(min=1e-2)
        return self.readout(bend).sum(dim=1)


def model() -> nn.Module:
    torch.manual_seed(0)
    return Curvature().eval()


def inputs(batch: int, points: int) -> tuple[object, ...]:
    return (torch.randn(batch, points, 2),)
