"""Entries that are picked by fewer nodes: one of several along an axis, and a table that is looked up as a whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from tests.conversion.graph.exported import both, exported, operators
from tests.running import is_right


class Chosen(nn.Module):
    def __init__(self, choose: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.choose = choose

    def forward(self, x: Tensor) -> Tensor:
        return self.choose(x.relu())


def test_one_of_several_is_gathered(tmp_path: Path) -> None:
    model = Chosen(lambda x: x[..., 1:2].squeeze(-1) + 1)
    path, plain = both(tmp_path, model, (torch.randn(2, 5, 4),), {"x": "batch seq 4"})
    found = operators(path)
    assert (plain["Slice"], plain["Squeeze"]) == (1, 1)
    assert (found["Slice"], found["Squeeze"], found["Gather"]) == (0, 0, 1)
    assert all(is_right(path, model, (torch.randn(*sizes, 4),)) for sizes in ((1, 2), (3, 7)))


def test_a_mask_that_is_looked_up_at_all_places_is_the_mask(tmp_path: Path) -> None:
    def masked(x: Tensor) -> Tensor:
        rows, columns = torch.arange(x.shape[0])[:, None], torch.arange(x.shape[1])[None]
        return (x > 0)[rows, columns].to(x.dtype) * x

    path = exported(tmp_path, Chosen(masked), (torch.randn(3, 5),), {"x": "rows columns"})
    assert operators(path)["GatherND"] == 0
    assert all(is_right(path, Chosen(masked), (torch.randn(sizes),)) for sizes in ((1, 1), (4, 7)))
