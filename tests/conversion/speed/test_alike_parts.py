"""Parts that are alike are traced once and copied; parts that only look alike are traced in full, and right."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from torch import Tensor, nn

import anyshape
from tests.running import is_right

DIMS = {"x": "batch seq 8"}
SIZES = ((1, 1), (2, 9), (7, 3))


class Block(nn.Module):
    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        self.norm, self.first, self.second = nn.LayerNorm(8), nn.Linear(8, 16), nn.Linear(16, 8)
        self.scale = scale

    def forward(self, x: Tensor) -> Tensor:
        return x + self.scale * self.second(self.first(self.norm(x)).relu_())


class Stack(nn.Module):
    def __init__(self, *blocks: nn.Module) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(blocks)

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return x


def exported(model: nn.Module, path: Path) -> anyshape.Result:
    torch.manual_seed(0)
    result = anyshape.export(model.eval(), (torch.randn(3, 5, 8),), path, dims=DIMS, quick=True)
    assert all(is_right(path, model, (torch.randn(*sizes, 8),)) for sizes in SIZES)
    return result


def test_blocks_that_are_alike_are_traced_once(tmp_path: Path) -> None:
    torch.manual_seed(0)
    result = exported(Stack(*(Block() for _ in range(4))), tmp_path / "model.onnx")
    assert result.attempts[-1].copied == ("Block",) * 3
    assert [attempt.strategy for attempt in result.attempts] == ["torch.export"]


def test_a_copy_has_the_weights_and_the_lines_of_its_own_part(tmp_path: Path) -> None:
    torch.manual_seed(0)
    exported(Stack(Block(), Block()), tmp_path / "model.onnx")
    graph = onnx.load(tmp_path / "model.onnx").graph
    products = [node for node in graph.node if node.op_type in ("MatMul", "Gemm")]
    assert len(products) == len({node.input[1] for node in products}) == 4
    told = [{entry.key: entry.value for entry in node.metadata_props} for node in products]
    assert {one["anyshape.source"].split(":")[0] for one in told} == {"tests/conversion/speed/test_alike_parts.py"}
    scopes = ["blocks.0.first", "blocks.0.second", "blocks.1.first", "blocks.1.second"]
    assert [one["anyshape.scope"] for one in told] == scopes


def test_a_copy_in_another_module_has_the_names_around_it(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Stack(nn.Sequential(nn.Tanh(), Block()), Stack(nn.Tanh(), Block()))
    result = exported(model, tmp_path / "model.onnx")
    assert result.attempts[-1].copied == ("Block",)
    scopes = {node.metadata_props.get("anyshape.scope") for node in result.model.graph if node.op_type == "MatMul"}
    assert scopes == {"blocks.0.1.first", "blocks.0.1.second", "blocks.1.blocks.1.first", "blocks.1.blocks.1.second"}


def test_what_is_nested_in_other_parts_is_copied_too(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Stack(nn.Sequential(nn.Linear(8, 8), Block()), nn.Sequential(nn.Tanh(), Block()), Stack(Block(), Block()))
    result = exported(model, tmp_path / "model.onnx")
    assert result.attempts[-1].copied == ("Block",) * 3


class Counting(Block):
    """Decides by what nobody sees."""

    calls = 0

    def forward(self, x: Tensor) -> Tensor:
        Counting.calls += 1
        return super().forward(x) * Counting.calls


class Sum(nn.Module):
    """Each of its parts sees what it keeps outside of itself."""

    def __init__(self, block: Callable[[], nn.Module], count: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(block() for _ in range(count))

    def forward(self, x: Tensor) -> Any:
        Counting.calls = 0
        for block in self.blocks:
            x = block(x)
        return x


def test_parts_that_only_look_alike_are_traced_in_full(tmp_path: Path) -> None:
    torch.manual_seed(0)
    result = exported(Sum(Counting, 3), tmp_path / "model.onnx")
    assert [(attempt.strategy, attempt.outcome) for attempt in result.attempts] == [
        ("torch.export", "wrong"),
        ("torch.export in full", "checked"),
    ]


class Writing(Block):
    def forward(self, x: Tensor) -> Tensor:
        x.mul_(0.5)
        return super().forward(x)


class Doubled(nn.Module):
    def __init__(self, *blocks: nn.Module) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(blocks)

    def forward(self, x: Tensor) -> Tensor:
        x = x * 2
        for block in self.blocks:
            x = x + block(x)
        return x


class Borrowing(Block):
    """Reads a tensor that it was not given."""

    lent: Tensor

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + Borrowing.lent


class Lending(nn.Module):
    def __init__(self, *blocks: nn.Module) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(blocks)

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            Borrowing.lent = x.mean(1, keepdim=True)
            x = block(x)
        return x


def _shared() -> nn.Module:
    block = Block()
    return Stack(block, block, Block())


@pytest.mark.parametrize(
    "build",
    [
        lambda: Stack(Block(1.0), Block(2.0)),
        lambda: Doubled(Writing(), Writing()),
        lambda: Lending(Borrowing(), Borrowing()),
        _shared,
        lambda: Stack(Block(), Block().requires_grad_(requires_grad=False)),
    ],
    ids=["other attributes", "writes to its input", "reads what it was not given", "one part twice", "frozen weights"],
)
def test_what_differs_is_not_copied(build: Callable[[], nn.Module], tmp_path: Path) -> None:
    torch.manual_seed(0)
    result = exported(build(), tmp_path / "model.onnx")
    assert "Block" not in result.attempts[-1].copied
    assert len(result.attempts) == 1


def _operator_and_module(node: Any) -> tuple[str, str]:
    return node.op_type, node.metadata_props.get("anyshape.scope", "")


def test_the_graph_is_the_same_as_without_copying(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
    counts = []
    for fewest in (4, 10**6):
        monkeypatch.setattr("anyshape.sizes.budgets.FEWEST_NODES_TO_COPY", fewest)
        result = anyshape.export(model.eval(), (torch.randn(2, 5, 8),), None, dims={"src": "batch seq 8"}, quick=True)
        counts.append((bool(result.attempts[-1].copied), sorted(map(_operator_and_module, result.model.graph))))
    assert (counts[0][0], counts[1][0]) == (True, False)
    assert counts[0][1] == counts[1][1]


class Numbered(Block):
    """As the layers of transformers, each of which knows its number."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number, self.inner = number, nn.Identity()
        vars(self.inner)["number"] = number


class ReadingItsNumber(Numbered):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) * (self.number // 2)


class ReadingByDict(Numbered):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) * (vars(self)["number"] // 2)


class ReadingInside(Numbered):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) * (self.inner.number // 2)


class ReadingByItself(Numbered):
    """Nobody can see what it reads."""

    def __getattribute__(self, name: str) -> Any:
        return object.__getattribute__(self, name)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) * (self.number // 2)


@pytest.mark.parametrize(
    ("block", "copies"),
    [(Numbered, 3), (ReadingItsNumber, 1), (ReadingByDict, 1), (ReadingInside, 1), (ReadingByItself, 1)],
)
def test_a_number_matters_where_it_is_read(block: type[Numbered], copies: int, tmp_path: Path) -> None:
    torch.manual_seed(0)
    result = exported(Stack(*(block(number) for number in (2, 3, 4, 2))), tmp_path / "model.onnx")
    assert result.attempts[-1].copied.count(block.__name__) == copies
    assert "__getattribute__" not in vars(nn.Module)


def test_a_number_that_an_inner_part_has_read_matters_where_that_part_was_copied(tmp_path: Path) -> None:
    torch.manual_seed(0)
    stacks = [Stack(*map(ReadingItsNumber, numbers)) for numbers in ((2, 2), (2, 4), (2, 2))]
    result = exported(Stack(*stacks), tmp_path / "model.onnx")
    assert result.attempts[-1].copied == ("ReadingItsNumber", "ReadingItsNumber", "Stack")


class Weighted(Block):
    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        return super().forward(x) * mask[:, :, None]


class Masked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Weighted() for _ in range(3))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x, mask)
        return x


def test_sizes_that_turn_out_to_be_one_while_the_first_is_traced_make_no_difference(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, path = Masked().eval(), tmp_path / "model.onnx"
    call = (torch.randn(3, 5, 8), torch.rand(3, 5))
    result = anyshape.export(model, call, path, dims={**DIMS, "mask": "batch seq"}, quick=True)
    assert result.attempts[-1].copied == ("Weighted", "Weighted")
    assert all(is_right(path, model, (torch.randn(*sizes, 8), torch.rand(*sizes))) for sizes in SIZES)
