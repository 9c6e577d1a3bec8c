"""Slices that part an axis become one Split; others stay."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.conversion.graph.exported import exported, operators
from tests.running import is_right

DIMS = {"x": "batch seq 6"}


class Cut(nn.Module):
    def __init__(self, cut: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.cut = cut

    def forward(self, x: Tensor) -> Any:
        return self.cut(x.relu())


CUTS: dict[str, tuple[Callable[[Tensor], Any], int, int]] = {
    "halves": (lambda y: y[..., :3] * y[..., 3:], 1, 0),
    "the later one first": (lambda y: y[..., 4:].exp().sum(-1) + y[..., :4].sum(-1), 1, 0),
    "three": (lambda y: y[..., :1] * y[..., 1:3] + y[..., -3:].mean(-1, keepdim=True), 1, 0),
    "returned as they are": (lambda y: (y[..., :2], y[..., 2:]), 1, 0),
    "a gap": (lambda y: y[..., :2] * y[..., 4:], 0, 2),
    "an overlap": (lambda y: y[..., :4] * y[..., 2:], 0, 2),
    "a step": (lambda y: y[..., ::2] * y[..., 1::2], 0, 2),
    "two axes": (lambda y: y[..., :1].sum() * y[:, :1].sum(), 0, 2),
    "an axis that varies": (lambda y: y[:, :1] * y[:, 1:], 0, 2),
    "the whole is read, too": (lambda y: (y[..., :3] * y[..., 3:], y), 0, 2),
}


@pytest.mark.parametrize("name", CUTS)
def test_slices_are_one_split_where_they_part_the_axis(name: str, tmp_path: Path) -> None:
    cut, splits, slices = CUTS[name]
    path = exported(tmp_path, Cut(cut), (torch.randn(2, 5, 6),), DIMS, sizes={"seq": "2.."})
    assert (operators(path)["Split"], operators(path)["Slice"]) == (splits, slices)
    assert all(is_right(path, Cut(cut), (torch.randn(*sizes, 6),)) for sizes in ((1, 2), (3, 7)))
