"""Norms, means and selections in fewer nodes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from tests.conversion.graph.exported import both, exported, operators
from tests.running import is_right


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


class Parts(nn.Module):
    """Three parts of the last axis, viewed, moved to the front and chosen one by one."""

    def __init__(self, *, heads: bool) -> None:
        super().__init__()
        self.heads = heads

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, seq, _ = x.shape
        if self.heads:
            first, second, third = x.reshape(batch, seq, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        else:
            first, second, third = x.reshape(batch, seq, 3, 8).permute(2, 0, 1, 3).unbind(0)
        return first * torch.tanh(second) - third


@pytest.mark.parametrize("heads", [False, True])
def test_parts_of_the_last_axis_are_split(tmp_path: Path, *, heads: bool) -> None:
    model = Parts(heads=heads)
    path = exported(tmp_path, model, (torch.randn(2, 5, 24),), {"x": "batch seq 24"})
    found = operators(path)
    assert (found["Split"], found["Gather"], found["Slice"]) == (1, 0, 0)
    assert found["Transpose"] == (3 if heads else 0)
    assert all(is_right(path, model, (torch.randn(*sizes, 24),)) for sizes in ((1, 1), (3, 1), (2, 7)))


class Rows(nn.Module):
    """The same of the first axis: nothing that a Split of the last could do."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, columns = x.shape
        first, second = x.reshape(2, rows // 2, columns).unbind(0)
        return first - second


def test_parts_of_another_axis_are_chosen(tmp_path: Path) -> None:
    sizes = {"rows": "2.. step 2"}
    path = exported(tmp_path, Rows(), (torch.randn(6, 3),), {"x": "rows columns"}, sizes=sizes)
    assert operators(path)["Split"] == 0
    assert all(is_right(path, Rows(), (torch.randn(sizes),)) for sizes in ((2, 1), (8, 5)))
