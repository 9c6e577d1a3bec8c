"""Results of several runs made one: what can be joined, and where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from anyshape.conversion.control_flow.paths import CannotJoinError, Exploration, are_joinable, join
from tests.conversion.control_flow.branching import checked, ifs_of


def test_without_branches_there_is_one_run() -> None:
    exploration = Exploration(None)
    for _ in exploration:
        exploration.give(7)
    assert exploration.joined() == 7
    assert exploration.is_straight
    assert exploration.decisions == []


def test_an_error_of_a_run_without_decisions_is_raised() -> None:
    exploration = Exploration(None)
    with pytest.raises(ValueError, match="mine"):
        for _ in exploration:
            exploration.fail(ValueError("mine"))


def _never() -> Any:
    raise AssertionError("nothing has to be chosen")


def test_what_is_the_same_on_both_sides_is_not_chosen() -> None:
    x = torch.ones(2)
    samples: Any = None
    found = join({"a": x, "b": ["text", 3]}, {"a": x, "b": ["text", 3]}, _never, samples)
    assert found["a"] is x
    assert found["b"] == ["text", 3]


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        ("long", "short", "str on one side, str on the other"),
        (None, torch.ones(2), "None on one side, a tensor of 1 axes of float32 on the other"),
        (torch.ones(2), torch.ones(2, 2), "a tensor of 1 axes of float32 on one side, a tensor of 2 axes"),
        ([1], [1, 2], "one side returns other things than the other"),
    ],
)
def test_what_a_file_cannot_choose_between_is_told(first: Any, second: Any, told: str) -> None:
    samples: Any = None
    with pytest.raises(CannotJoinError, match=told):
        join(first, second, _never, samples)


def test_numbers_and_tensors_of_one_kind_are_joinable() -> None:
    assert are_joinable([torch.ones(2), torch.zeros(5)])
    assert not are_joinable([torch.ones(2), torch.zeros(5, 1)])
    assert are_joinable([1, 2])
    assert not are_joinable([1.0, "text"])


class ModeOfCall(nn.Module):
    """A part decides and hands its decision out: only the code around can be run for each side."""

    class Part(nn.Module):
        def forward(self, x: Tensor) -> str:
            return "long" if x.shape[1] > 6 else "short"

    def __init__(self) -> None:
        super().__init__()
        self.part = self.Part()

    def forward(self, x: Tensor) -> Tensor:
        return x.cumsum(1) if self.part(x) == "long" else -x


def test_sides_that_cannot_meet_in_a_part_meet_further_out(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    torch.manual_seed(0)
    checked(ModeOfCall(), path, torch.randn(2, 4, 3), "batch n 3", torch.randn(1, 7, 3), torch.randn(2, 6, 3))
    assert ifs_of(path) == 1


class Weighted(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if x.shape[0] > 3:
            return x * torch.tensor([1.0, 2.0])
        return x + torch.tensor([3.0, 4.0])


def test_constants_made_on_either_side_are_in_the_file(tmp_path: Path) -> None:
    torch.manual_seed(0)
    checked(Weighted(), tmp_path / "model.onnx", torch.randn(2, 2), "n 2", torch.randn(4, 2), torch.randn(3, 2))
