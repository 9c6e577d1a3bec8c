"""Each size is read once; what is equal by declaration is one size."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from tests.conversion.graph.exported import exported, operators
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
