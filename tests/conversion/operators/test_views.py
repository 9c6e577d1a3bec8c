"""Parts and arrangements by sizes: windows that overlap, as in local attention, rolls, axes that are dropped."""

from __future__ import annotations

import weakref
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import anyshape
from anyshape.conversion.operators.repair import applied
from anyshape.conversion.operators.views import STRIDES
from anyshape.garbage import uncollected
from tests.conversion.functions import table, wrong_sizes_of
from tests.running import is_right


class Windows(nn.Module):
    """Chunks of four that overlap by two, of a tensor whose axes do not lie in their order."""

    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = F.pad(x, (0, 0, 0, (4 - x.shape[1] % 4) % 4))
        seq, batch = x.shape[1], x.shape[0]
        heads = self.query(x.transpose(0, 1)).view(seq, batch, 2, 2).permute(1, 2, 0, 3).reshape(batch * 2, seq, 2)
        chunks = heads.view(heads.size(0), torch.div(heads.size(1), 4, rounding_mode="trunc"), 4, heads.size(2))
        sizes, strides = list(chunks.size()), list(chunks.stride())
        sizes[1], strides[1] = sizes[1] * 2 - 1, strides[1] // 2
        return chunks.as_strided(sizes, strides)


def test_windows_of_a_transposed_tensor_are_gathered(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, path = nn.Sequential(Windows()).eval(), tmp_path / "model.onnx"
    result = anyshape.export(model, (torch.randn(2, 7, 4),), path, dims={"input": "batch seq 4"}, quick=True)
    assert result.attempts[-1].strategy == "torch.export with repairs"
    assert "torch.div of a size: stays a size" in result.repairs
    assert "as_strided: elements gathered by the size at run time" in result.repairs
    assert all(is_right(path, model, (torch.randn(batch, seq, 4),)) for batch, seq in ((1, 1), (1, 9), (3, 8), (2, 13)))


class Repeated(nn.Module):
    def forward(self, x: Tensor, repeats: Tensor) -> Tensor:
        return torch.repeat_interleave(x, repeats, dim=1)


@pytest.mark.parametrize("repeats", [[2], [2, 0, 3]])
def test_repeats_may_be_one_number_or_one_for_each(repeats: list[int], tmp_path: Path) -> None:
    path, example = tmp_path / "model.onnx", (torch.randn(2, 3), torch.tensor(repeats))
    result = anyshape.export(Repeated(), example, path, dims={"x": "2 w", "repeats": "r"}, quick=True)
    assert result.repairs == ("torch.repeat_interleave: one number for all or for each, by the size at run time",)
    for numbers in ([4], [1, 2, 3, 0, 5]):
        assert is_right(path, Repeated(), (torch.randn(2, 5), torch.tensor(numbers)))


class TakesOver(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        x = x + 1
        x.set_(y)
        return x * 2


def test_a_tensor_that_takes_over_another_is_that_other(tmp_path: Path) -> None:
    path, example = tmp_path / "model.onnx", (torch.randn(2, 3), torch.randn(4, 5))
    anyshape.export(TakesOver(), example, path, dims={"y": "n m"}, quick=True)
    assert is_right(path, TakesOver(), (torch.randn(2, 3), torch.randn(7, 2)))


class Shortened(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        x = x + 1
        x.resize_(x.shape[0], 2)
        return x * 2


def test_a_tensor_resized_to_less_keeps_its_first_values(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    anyshape.export(Shortened(), torch.randn(3, 5), path, dims={"x": "n 5"}, quick=True)
    assert is_right(path, Shortened(), (torch.randn(7, 5),))


class Thing:
    pass


def test_a_call_of_as_strided_keeps_no_local_of_its_callers() -> None:
    """Torch takes a tensor that someone else still holds for another's, and hands out an untraced copy of it."""

    def call() -> weakref.ref[Thing]:
        thing = Thing()
        torch.arange(6).as_strided((3,), (2,))
        return weakref.ref(thing)

    with applied([STRIDES]), uncollected():
        assert call()() is None


FUNCTIONS = {
    "roll": lambda x: (x.roll(5, 1), x.roll(-2), x.roll((x.shape[1] // 2, 1), (1, 0))),
    "squeeze": lambda x: (x.squeeze(0) + 1, x[:, None].squeeze((1, 2))),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_arrangements_of_tables(name: str, tmp_path: Path) -> None:
    assert wrong_sizes_of(FUNCTIONS[name], table, tmp_path / "m.onnx") == []


LATER_SIZES = {
    "cut": lambda x, many: x[: many[0]].squeeze(0) * 2,
    "made": lambda x, many: torch.zeros(many[0], x.shape[1]).squeeze(0),
    "chosen": lambda x, many: x[torch.arange(x.shape[0]) < many].squeeze(0) + 1,
}


@pytest.mark.parametrize("name", LATER_SIZES)
def test_an_axis_goes_where_values_make_it_one(name: str) -> None:
    """The trace takes a size that values decide for another than 1."""
    function, x = LATER_SIZES[name], torch.randn(5, 3)
    result = anyshape.export(function, (x, torch.tensor([3])), dims={})
    for many in (1, 2, 4):
        expected = function(x, torch.tensor([many]))
        torch.testing.assert_close(torch.as_tensor(result(x, torch.tensor([many]))[0]), expected)
