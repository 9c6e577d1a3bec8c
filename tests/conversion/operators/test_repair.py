"""Functions of torch answered during a trace: only where a size is given, by whatever name, and never afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d

import anyshape
from anyshape.conversion.operators.repair import answered, applied
from anyshape.conversion.operators.table import REPAIRS
from tests.conversion.functions import exported, wrong_sizes

OURS = [
    (F, "avg_pool2d"), (F, "adaptive_max_pool2d"), (F, "one_hot"), (torch, "chunk"), (torch, "istft"),
    (Tensor, "chunk"), (Tensor, "split"), (Tensor, "__setitem__"), (Tensor, "take_along_dim"),
]  # fmt: skip


def image(b: int, h: int, w: int) -> tuple[Any, ...]:
    return (torch.randn(b, 3, h, w),)


def test_names_are_back_after_an_exception() -> None:
    before = [getattr(*place) for place in OURS]
    with pytest.raises(ZeroDivisionError), applied(REPAIRS):
        assert F.avg_pool2d is not before[0]
        1 / 0
    assert [getattr(*place) for place in OURS] == before


def test_an_answer_may_decline() -> None:
    answers = {(torch, "relu"): lambda x: NotImplemented, (torch, "tanh"): lambda x: x * 0 + 7}
    with answered(answers):
        assert torch.relu(torch.tensor(-1.0)) == 0
        assert torch.tanh(torch.tensor(-1.0)) == 7
    assert torch.tanh(torch.tensor(0.0)) == 0


def test_literal_windows_and_static_axes_are_left_to_torch() -> None:
    x = torch.randn(2, 3, 8, 8)
    plain = [F.max_pool2d(x, 2), *x.chunk(3, 1), F.one_hot(torch.arange(3), 4), *x.split(3, -1)]
    with applied(REPAIRS) as acted:
        repaired = [F.max_pool2d(x, 2), *x.chunk(3, 1), F.one_hot(torch.arange(3), 4), *x.split(3, -1)]
    assert acted.sentences == []
    assert all(torch.equal(one, other) for one, other in zip(plain, repaired, strict=True))


def test_a_function_imported_by_its_own_name_is_answered(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    pooled = lambda x: avg_pool2d(x, x.shape[2:])  # noqa: E731
    result = exported(pooled, image, ["b 3 h w"], {"b": 2, "h": 6, "w": 9}, path)
    assert result.repairs == ("F.avg_pool2d: windows by the size at run time",)
    assert wrong_sizes(pooled, image, [{"b": 1, "h": 1, "w": 1}, {"b": 3, "h": 4, "w": 11}], path) == []


class Halved(nn.AvgPool2d):
    """A user's layer, whose kernel is set at every call."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        self.kernel_size = (input.shape[2] // 2, 1)
        self.stride = (1, 1)
        return super().forward(input)


def test_a_subclass_of_a_layer_is_answered_and_left_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    model = nn.Sequential(nn.Sequential(Halved(2)), Halved(2))
    torch.manual_seed(0)
    sizes = {"h": "4.."}
    anyshape.export(model, image(2, 9, 5), path, dims={"input": "b 3 h w"}, sizes=sizes, quick=True)
    assert (model[1].kernel_size, model[1].stride) == (2, 2)
    assert wrong_sizes(model, image, [{"b": 1, "h": 4, "w": 1}, {"b": 3, "h": 12, "w": 2}], path) == []


FUNCTIONS = {
    "chunk": lambda x: torch.cat([part.cumsum(2) for part in x.chunk(4, dim=2)], dim=2),
    "tensor_split": lambda x: torch.tensor_split(x, 4, dim=3),
    "split by half": lambda x: x.split((x.shape[3] + 1) // 2, dim=-1)[0],
    "maximum over a quarter": lambda x: F.max_pool2d(x, (x.shape[2] // 2, 2), stride=(1, 2), ceil_mode=True),
    "kron": lambda x: torch.kron(x[:, 0], torch.ones(2, 3)),
    "lower triangle": lambda x: torch.tril_indices(x.shape[2], x.shape[2], -1).sum(0),
    "triangle of a rectangle": lambda x: torch.triu_indices(x.shape[2], x.shape[3]).sum(1),
    "as_tensor": lambda x: torch.as_tensor(x.shape[2]) * x,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_sizes_where_torch_takes_numbers(name: str, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    exported(FUNCTIONS[name], image, ["b 3 h w"], {"b": 2, "h": 8, "w": 9}, path)
    sizes = [{"b": 1, "h": 5, "w": 2}, {"b": 3, "h": 4, "w": 13}, {"b": 2, "h": 12, "w": 8}]
    assert wrong_sizes(FUNCTIONS[name], image, sizes, path) == []


@pytest.mark.parametrize("layer", [nn.MaxPool1d(3, 2, padding=1, ceil_mode=True), nn.MaxPool1d(2, dilation=2)])
def test_maxima_along_one_axis_need_no_second_try(layer: nn.Module, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    make = lambda b, t: (torch.randn(b, 3, t),)  # noqa: E731
    model = nn.Sequential(nn.Conv1d(3, 3, 1), nn.Sequential(layer))
    result = anyshape.export(model, make(2, 9), path, dims={"input": "b 3 t"}, quick=True)
    assert [attempt.strategy for attempt in result.attempts] == ["torch.export"]
    assert wrong_sizes(model, make, [{"b": 1, "t": 3}, {"b": 4, "t": 14}], path) == []
