"""Each size is read once; what is equal by declaration is one size."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from tests.conversion.graph.exported import both, exported, operators
from tests.running import is_right


class Counted(nn.Module):
    """Numbers that depend on the sizes of two inputs, read from inputs and from results."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        first = torch.arange(x.shape[0]) + torch.tanh(x).shape[1]
        second = torch.arange(y.shape[0]) * torch.relu(y).shape[1]
        return first[:, None] + second[None]


def test_a_dim_of_two_inputs_is_read_from_the_first(tmp_path: Path) -> None:
    args = (torch.randn(2, 5), torch.randn(2, 5))
    path = exported(tmp_path, Counted(), args, {"x": "batch seq", "y": "batch seq"})
    found = operators(path)
    assert (found["Shape"], found["Range"]) == (2, 1)
    for sizes in ((1, 1), (4, 3)):
        assert is_right(path, Counted(), (torch.randn(sizes), torch.randn(sizes)))


def test_dims_of_their_own_are_read_apart(tmp_path: Path) -> None:
    args = (torch.randn(2, 5), torch.randn(3, 4))
    path = exported(tmp_path, Counted(), args, {"x": "a b", "y": "c d"})
    assert operators(path)["Shape"] == 4
    assert is_right(path, Counted(), (torch.randn(4, 1), torch.randn(1, 6)))


# ---- shapes written as numbers


class Views(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, seq, _ = x.shape
        return x.reshape(batch, seq, 3, 4).tanh().reshape(batch, seq * 3, 4)


def test_a_view_that_keeps_axes_needs_no_sizes(tmp_path: Path) -> None:
    path, plain = both(tmp_path, Views(), (torch.randn(2, 5, 12),), {"x": "batch seq 12"})
    assert plain["Shape"] > 0
    assert set(operators(path)) == {"Reshape", "Tanh"}
    assert all(is_right(path, Views(), (torch.randn(*sizes, 12),)) for sizes in ((1, 1), (3, 1), (1, 8), (4, 7)))


def test_what_may_be_empty_is_not_left_to_be_counted(tmp_path: Path) -> None:
    path = exported(tmp_path, Views(), (torch.randn(2, 5, 12),), {"x": "batch seq 12"}, sizes={"batch": "0.."})
    assert operators(path)["Shape"] > 0
    assert all(is_right(path, Views(), (torch.randn(*sizes, 12),)) for sizes in ((0, 3), (1, 1), (3, 2)))


class Spread(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, seq = x.shape
        return x[:, :, None].expand(batch, seq, 3) * x.expand(batch, seq)[:, :, None]


def test_an_axis_is_spread_without_the_sizes_of_the_others(tmp_path: Path) -> None:
    path = exported(tmp_path, Spread(), (torch.randn(2, 5),), {"x": "batch seq"}, sizes={"batch": "0.."})
    found = operators(path)
    assert (found["Expand"], found["Shape"]) == (1, 0)
    assert all(is_right(path, Spread(), (torch.randn(*sizes),)) for sizes in ((0, 3), (1, 1), (4, 2)))


class Joined(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x.reshape(x.shape[0] * x.shape[1], 4) @ y.reshape(4, y.shape[0] * y.shape[1])


def test_a_product_of_sizes_is_counted_where_nothing_is_empty(tmp_path: Path) -> None:
    args = (torch.randn(2, 3, 4), torch.randn(2, 5, 4))
    path = exported(tmp_path, Joined(), args, {"x": "batch seq 4", "y": "batch other 4"})
    assert operators(path) == {"Reshape": 2, "MatMul": 1}
    for batch, seq, other in ((1, 1, 1), (3, 2, 7)):
        assert is_right(path, Joined(), (torch.randn(batch, seq, 4), torch.randn(batch, other, 4)))
