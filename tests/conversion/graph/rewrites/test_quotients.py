"""Divisions in fewer nodes: floor divisions of sizes that are never negative, roots, means."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from tests.conversion.graph.exported import both, exported, operators
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


class RootMeanSquare(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


def test_a_root_is_divided_by_before_there_is_an_operator(tmp_path: Path) -> None:
    model = RootMeanSquare()
    path, plain = both(tmp_path, model, (torch.randn(2, 3, 8),), {"x": "batch seq 8"}, opset_version=20)
    found = operators(path)
    assert (plain["Reciprocal"], found["Reciprocal"], found["Div"]) == (1, 0, 1)
    assert all(is_right(path, model, (torch.randn(*sizes, 8),)) for sizes in ((1, 1), (3, 4)))


class Pooled(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.adaptive_avg_pool2d(x, 1)


def test_a_mean_over_two_axes_is_one_node(tmp_path: Path) -> None:
    path = exported(tmp_path, Pooled(), (torch.randn(2, 3, 5, 6),), {"x": "batch 3 height width"})
    assert operators(path) == {"ReduceMean": 1}
    assert all(is_right(path, Pooled(), (torch.randn(sizes),)) for sizes in ((1, 3, 1, 1), (3, 3, 7, 2)))
