"""Module calls with branches in them: each side is run, and what a side sets or raises stays on that side."""

from __future__ import annotations

from pathlib import Path

import onnx
import torch
from torch import Tensor, nn
from torch.fx.experimental.sym_node import SymNode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

import anyshape
from anyshape.conversion.control_flow.module_paths import missing_names
from tests.conversion.control_flow.branching import checked, ifs_of


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
    result = checked(
        Gates(6).eval(), path, torch.randn(2, 5, 3), "batch n 3", torch.randn(1, 9, 3), torch.randn(3, 1, 3)
    )
    assert ifs_of(path) == 6
    assert sum(node.op_type == "MatMul" for node in onnx.load(path).graph.node) == 0, "each stands in its side alone"
    assert [sentence.split(":")[0] for sentence in result.repairs] == ["1 branch kept as If"]


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
    checked(model, tmp_path / "model.onnx", torch.randn(2, 3), "n 3", torch.randn(4, 3), torch.randn(3, 3))
    assert model.scale == 2.0, "of the last call in PyTorch"


class Made(nn.Module):
    """Of these torch computes the fake result by views, while the call of the model is still open."""

    def forward(self, x: Tensor) -> Tensor:
        if (x > 0).any():
            return x @ torch.eye(4) + torch.eye(x.shape[1], 4)
        return x


def test_tensors_made_on_a_side_are_part_of_the_program(tmp_path: Path) -> None:
    torch.manual_seed(0)
    path = tmp_path / "model.onnx"
    checked(Made(), path, torch.randn(2, 5, 4), "b s 4", torch.randn(1, 3, 4), -torch.rand(3, 6, 4))
    assert ifs_of(path) == 1


class Short(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if x.shape[0] > 20:
            raise ValueError("too long")
        return x * 2 if x.shape[0] > 4 else x - 1


def test_a_side_that_raises_is_a_limit(tmp_path: Path) -> None:
    torch.manual_seed(0)
    result = checked(Short(), tmp_path / "model.onnx", torch.randn(3, 2), "n 2", torch.randn(20, 2))
    assert result.limits == ("n <= 20",)


def test_this_torch_has_all_the_names() -> None:
    assert missing_names() == []


def test_torch_is_as_before_afterwards() -> None:
    places = [(ShapeEnv, "evaluate_expr"), (nn.Module, "_call_impl"), (nn.Module, "__setattr__"), (SymNode, "hint")]
    before = [vars(owner)[name] for owner, name in places]
    anyshape.export(Gate().eval(), (torch.randn(2, 5, 3),), dims={"x": "batch n 3"}, quick=True)
    assert [vars(owner)[name] for owner, name in places] == before
