"""Branches in a trace: where their sides are run and joined, what the result says, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from torch import Tensor, nn

import anyshape
from tests.running import is_right


def _ifs(path: Path) -> int:
    return sum(node.op_type == "If" for node in onnx.load(path).graph.node)


def _check(model: nn.Module, path: Path, example: Tensor, dims: str, *others: Tensor) -> anyshape.Result:
    result = anyshape.export(model, (example,), path, dims={"x": dims}, quick=True)
    assert all(is_right(path, model, (other,)) for other in (example, *others))
    return result


class Gate(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] > 8:
            return self.left(x)
        return self.right(x)


class Gates(nn.Module):
    def __init__(self, count: int) -> None:
        super().__init__()
        self.gates = nn.ModuleList(Gate() for _ in range(count))

    def forward(self, x: Tensor) -> Tensor:
        for gate in self.gates:
            x = gate(x).relu()
        return x


def test_branches_in_modules_one_after_another_add_up(tmp_path: Path) -> None:
    torch.manual_seed(0)
    path = tmp_path / "model.onnx"
    result = _check(
        Gates(6).eval(), path, torch.randn(2, 5, 3), "batch n 3", torch.randn(1, 9, 3), torch.randn(3, 1, 3)
    )
    assert _ifs(path) == 6
    assert sum(node.op_type == "MatMul" for node in onnx.load(path).graph.node) == 0, "each stands in its side alone"
    assert [sentence.split(":")[0] for sentence in result.repairs] == ["1 branch kept as If"]


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
    _check(ModeOfCall(), path, torch.randn(2, 4, 3), "batch n 3", torch.randn(1, 7, 3), torch.randn(2, 6, 3))
    assert _ifs(path) == 1


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = 1.0

    def forward(self, x: Tensor) -> Tensor:
        self.scale = 0.5 if x.shape[0] > 3 else 2.0
        return x * self.scale


def test_what_a_side_sets_on_the_module_is_set_on_that_side_alone(tmp_path: Path) -> None:
    model = Scaled()
    torch.manual_seed(0)
    _check(model, tmp_path / "model.onnx", torch.randn(2, 3), "n 3", torch.randn(4, 3), torch.randn(3, 3))
    assert model.scale == 2.0, "of the last call in PyTorch"


class Short(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if x.shape[0] > 20:
            raise ValueError("too long")
        return x * 2 if x.shape[0] > 4 else x - 1


def test_a_side_that_raises_is_a_limit(tmp_path: Path) -> None:
    torch.manual_seed(0)
    result = _check(Short(), tmp_path / "model.onnx", torch.randn(3, 2), "n 2", torch.randn(20, 2))
    assert result.limits == ("n <= 20",)


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
    assert f"test_branches.py:{line}" in reason


class Padded(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        missing = -x.shape[1] % 4
        if missing:
            x = nn.functional.pad(x, (0, 0, 0, missing))
        return x.reshape(x.shape[0], x.shape[1] // 4, 12)


def test_where_one_path_is_right_everywhere_there_is_no_if(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    torch.manual_seed(0)
    result = _check(Padded(), path, torch.randn(2, 8, 3), "batch n 3", torch.randn(1, 7, 3), torch.randn(2, 12, 3))
    assert _ifs(path) == 0
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


class Weighted(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if x.shape[0] > 3:
            return x * torch.tensor([1.0, 2.0])
        return x + torch.tensor([3.0, 4.0])


def test_constants_made_on_either_side_are_in_the_file(tmp_path: Path) -> None:
    torch.manual_seed(0)
    _check(Weighted(), tmp_path / "model.onnx", torch.randn(2, 2), "n 2", torch.randn(4, 2), torch.randn(3, 2))


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
    result = _check(names["Parted"](), path, torch.randn(3, 2), "n 2", torch.randn(2, 2), torch.randn(5, 2))
    assert _ifs(path) == 1
    assert result.repairs == ("1 branch kept as If: torch/examples/parted.py:4",)
