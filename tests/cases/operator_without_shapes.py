"""An operator that never said what shapes it gives: a list in, two tensors out, three modules deep, called twice."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"left": "batch n 4", "right": "batch m 4"}
sizes = {"batch": (3, [1, 2]), "n": (5, [1, 8]), "m": (4, [1, 7])}
exports = True


_SCHEMA = "(Tensor[] parts, float scale, Tensor? shift=None) -> (Tensor, Tensor)"


@torch.library.custom_op("anyshape_cases::joined_and_scaled", mutates_args=(), schema=_SCHEMA)
def joined_and_scaled(parts: list[Tensor], scale: float, shift: Tensor | None = None) -> tuple[Tensor, Tensor]:
    joined = torch.cat(parts, dim=1)
    if shift is not None:
        joined = joined + shift
    return joined, (joined.abs() * scale).mean(dim=1)


class Join(nn.Module):
    def forward(self, values: tuple[Tensor, Tensor]) -> Tensor:
        left, right = values
        joined, mean = joined_and_scaled([left, right], left.shape[1] ** 0.5)
        _, again = torch.ops.anyshape_cases.joined_and_scaled([joined, right], 2.0, mean.unsqueeze(1))
        return mean + again


class Deep(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        inner = nn.Sequential(Join(), nn.Linear(4, 3))
        self.blocks = nn.ModuleList([nn.Sequential(inner)])

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        return self.blocks[0]((left, right))


def model() -> nn.Module:
    torch.manual_seed(0)
    return Deep().eval()


def inputs(batch: int, n: int, m: int) -> tuple[object, ...]:
    return torch.randn(batch, n, 4), torch.randn(batch, m, 4)
