"""Floor divisions of sizes that are never negative are one node."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from tests.conversion.graph.exported import exported, operators
from tests.running import is_right


class Counting(nn.Module):
    def __init__(self, count: Callable[[int], int]) -> None:
        super().__init__()
        self.count = count

    def forward(self, x: Tensor) -> Tensor:
        return torch.arange(self.count(x.shape[1])) + x.sum().long() * 0


COUNTS: dict[str, tuple[Callable[[int], int], int]] = {
    "a feature map": (lambda n: (n - 1) // 8 + 1, 0),
    "twice": (lambda n: ((n - 1) // 2 + 3) // 4 + 1, 0),
    "a multiple": (lambda n: 3 * n // 4 + 1, 0),
    "below zero at one": (lambda n: (n - 3) // 4 + 1, 1),
    "of a difference": (lambda n: (5 - n) // 4 + n + 1, 1),
}


@pytest.mark.parametrize("name", COUNTS)
def test_what_may_be_negative_keeps_its_remainder(name: str, tmp_path: Path) -> None:
    count, remainders = COUNTS[name]
    path = exported(tmp_path, Counting(count), (torch.randn(2, 20),), {"x": "batch n"})
    assert min(operators(path)["Mod"], 1) == remainders
    assert all(is_right(path, Counting(count), (torch.randn(2, n),)) for n in (1, 2, 3, 4, 7, 8, 9, 17, 33))
