"""Who asks a question, which of them are answered both ways, and how many paths there may be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sympy
import torch
from torch import Tensor, nn

import anyshape
from anyshape.conversion.control_flow.forks import (
    CannotJoinError,
    Exploration,
    are_joinable,
    is_models,
    is_question,
    is_raised_by_model,
    join,
)
from tests.conversion.control_flow.branching import checked, ifs_of
from tests.running import is_right


def test_a_question_is_a_truth_that_depends_on_something() -> None:
    n = sympy.Symbol("n", integer=True)
    assert is_question(n > 3)
    assert not is_question(n + 3)
    assert not is_question(n)
    assert not is_question(sympy.true)


def test_layers_of_torch_ask_for_the_model_and_its_operators_do_not() -> None:
    assert is_models(__file__)
    assert is_models(nn.Linear.forward.__code__.co_filename)
    assert not is_models(torch.__file__)
    assert not is_models(anyshape.__file__)


def test_who_raises_is_the_innermost_frame() -> None:
    with pytest.raises(ValueError, match="of the model") as ours:
        raise ValueError("of the model")
    assert is_raised_by_model(ours.value)
    with pytest.raises(TypeError) as torchs:
        torch.library.get_ctx(1)  # type: ignore[call-arg]
    assert is_raised_by_model(torchs.value)  # called wrongly here
    with pytest.raises(AssertionError) as within:
        torch.testing.assert_close(torch.ones(1), torch.zeros(1))
    assert not is_raised_by_model(within.value)


class Digits(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        size = x.shape[0]
        for step in range(2, 12):
            x = x * step if size % step == 0 else x.sin() + step
        return x


def test_more_paths_than_a_file_could_hold_are_refused_with_their_lines() -> None:
    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.export(Digits(), (torch.randn(6, 2),), dims={"x": "n 2"}, quick=True)
    reasons = {attempt.strategy: attempt.reason for attempt in refused.value.result.attempts}
    line = Digits.forward.__code__.co_firstlineno + 3
    reason = reasons["torch.export with branches and loops"]
    assert reason.startswith("TooManyPathsError: more than 16 paths through the branches at ")
    assert f"test_forks.py:{line}" in reason


class Padded(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        missing = -x.shape[1] % 4
        if missing:
            x = nn.functional.pad(x, (0, 0, 0, missing))
        return x.reshape(x.shape[0], x.shape[1] // 4, 12)


def test_where_one_path_is_right_everywhere_there_is_no_if(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    torch.manual_seed(0)
    result = checked(Padded(), path, torch.randn(2, 8, 3), "batch n 3", torch.randn(1, 7, 3), torch.randn(2, 12, 3))
    assert ifs_of(path) == 0
    assert result.attempts[-1].strategy == "torch.export at other sizes"


class Loud(nn.Module):
    def forward(self, x: Tensor, quiet: Tensor) -> Any:
        if torch.equal(x, quiet):
            return x
        return x.cumsum(0)


def test_a_comparison_of_tensors_decides_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    torch.manual_seed(0)
    x, quiet = torch.randn(3, 2), torch.zeros(3, 2)
    anyshape.export(Loud(), (x, quiet), path, dims={"x": "n 2", "quiet": "n 2"}, quick=True)
    other = torch.randn(5, 2)
    assert is_right(path, Loud(), (other, torch.zeros(5, 2)))
    assert is_right(path, Loud(), (other, other.clone()))


_WITHIN_TORCH = """
class Parted(nn.Module):
    def forward(self, x):
        if x.shape[0] == 3:
            return x.cos()
        return x.sin()
"""


def test_a_model_whose_file_lies_within_torch_has_branches_of_its_own(tmp_path: Path) -> None:
    names: dict[str, Any] = {"nn": nn}
    filename = str(Path(torch.__file__).parent / "examples" / "parted.py")
    exec(compile(_WITHIN_TORCH, filename, "exec"), names)
    path = tmp_path / "model.onnx"
    torch.manual_seed(0)
    result = checked(names["Parted"](), path, torch.randn(3, 2), "n 2", torch.randn(2, 2), torch.randn(5, 2))
    assert ifs_of(path) == 1
    assert result.repairs == ("1 branch kept as If: torch/examples/parted.py:4",)


# ---- all paths of a piece of code


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
