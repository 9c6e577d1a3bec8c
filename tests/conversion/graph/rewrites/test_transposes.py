"""Two Transposes that undo each other around nodes that take row by row are left out; others stay."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from tests.conversion.graph.exported import both, operators
from tests.running import is_right


class TimeFirst(nn.Module):
    """A layer between two swaps of batch and time; what looks along time keeps them."""

    def __init__(self, *, looks_along_time: bool) -> None:
        super().__init__()
        self.linear, self.looks_along_time = nn.Linear(4, 6), looks_along_time

    def forward(self, x: Tensor) -> Tensor:
        rows = self.linear(x.transpose(0, 1))
        rows = rows.cumsum(0) if self.looks_along_time else rows
        return rows.transpose(0, 1).tanh()


@pytest.mark.parametrize("looks_along_time", [False, True])
def test_swaps_are_left_out_where_nothing_looks_along_time(tmp_path: Path, *, looks_along_time: bool) -> None:
    torch.manual_seed(0)
    model = TimeFirst(looks_along_time=looks_along_time)
    path, plain = both(tmp_path, model, (torch.randn(2, 5, 4),), {"x": "batch seq 4"})
    assert plain["Transpose"] >= 2
    assert operators(path)["Transpose"] == (2 if looks_along_time else 0)
    assert all(is_right(path, model, (torch.randn(*sizes, 4),)) for sizes in ((1, 1), (3, 7)))
