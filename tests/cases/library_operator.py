"""Operators of a torch.library.Library: a size goes through an argument that the schema calls a plain `int`."""

from __future__ import annotations

import torch
from torch import Tensor, nn

dims = {"values": "batch n 2"}
sizes = {"batch": (3, [1, 2]), "n": (6, [1, 9])}
exports = True

LIBRARY = torch.library.Library("anyshape_cases", "FRAGMENT")
LIBRARY.define("folded(Tensor values, int rows) -> Tensor")
LIBRARY.define("shares(Tensor values, *, float scale=1.0) -> Tensor")


def _folded(values: Tensor, rows: int) -> Tensor:
    return values.reshape(rows, -1).cumsum(dim=1)


def _shares(values: Tensor, *, scale: float = 1.0) -> Tensor:
    return torch.softmax(values * scale, dim=0)


LIBRARY.impl("folded", _folded, "CPU")
LIBRARY.impl("shares", _shares, "CompositeExplicitAutograd")


class LibraryOperator(nn.Module):
    def forward(self, values: Tensor) -> Tensor:
        folded = torch.ops.anyshape_cases.folded(values, values.shape[1])
        return torch.ops.anyshape_cases.shares.default(folded, scale=1 / values.shape[0])


def model() -> nn.Module:
    torch.manual_seed(0)
    return LibraryOperator().eval()


def inputs(batch: int, n: int) -> tuple[object, ...]:
    return (torch.randn(batch, n, 2),)
