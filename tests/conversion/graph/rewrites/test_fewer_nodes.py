"""Entries that are picked by fewer nodes: one of several along an axis, and a table that is looked up as a whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
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


# ---- parts of an axis

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


# ---- divisions


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
