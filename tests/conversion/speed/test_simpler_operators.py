"""A write is replaced where nobody else sees the tensor; where somebody does, it is seen by all who share it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import anyshape
from tests.conversion.functions import exported, wrong_sizes
from tests.conversion.speed.one_tensor import DIMS, SIZES, make
from tests.running import is_right


def _view_taken_before(x: Tensor) -> Tensor:
    y = x * 2
    row = y[:, 0]
    y += 1
    return row


def _same_tensor_by_another_name(x: Tensor) -> Tensor:
    y = x * 2
    z = F.dropout(y, 0.5, training=False)  # the very same tensor
    z += 1
    return y


def _written_through_a_view(x: Tensor) -> Tensor:
    y = x * 2
    y.transpose(1, 2).mul_(3)
    return y


def _read_before_and_after(x: Tensor) -> tuple[Tensor, Tensor]:
    y = x * 2
    before = y.sum(dim=1)
    y += 1
    return before, y.sum(dim=1)


def _written_twice(x: Tensor) -> Tensor:
    y = x * 2
    y += 1
    y *= x
    return y.clamp_(min=0) + y


def _written_by_itself(x: Tensor) -> Tensor:
    y = x * 2
    y += y
    return y


def _whole_numbers(x: Tensor) -> Tensor:
    y = (x * 9).to(torch.int64)
    y *= 2
    return y


def _narrower_than_what_is_added(x: Tensor) -> Tensor:
    y = x * 2
    y += x.to(torch.float64)
    return y


def _given_back_with_its_view(x: Tensor) -> tuple[Tensor, Tensor]:
    y = x * 2
    y.relu_()
    z = y.reshape(-1)
    y.neg_()
    return y, z


WRITES: list[Callable[..., Any]] = [
    _view_taken_before, _same_tensor_by_another_name, _written_through_a_view, _read_before_and_after, _written_twice,
    _written_by_itself, _whole_numbers, _narrower_than_what_is_added, _given_back_with_its_view,
]  # fmt: skip


@pytest.mark.parametrize("function", WRITES)
def test_a_write_is_seen_by_all_who_share_the_tensor(function: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    result = exported(function, make, DIMS, {"batch": 2, "length": 5}, path)
    assert result.attempts[-1].strategy == "torch.export"
    assert not wrong_sizes(function, make, SIZES, path)


# ---- writes to a part of a tensor


def _column(x: Tensor) -> Tensor:
    y = x * 2
    y[:, 0] = 7.0
    return y + x


def _shifted(x: Tensor) -> Tensor:
    """As labels are shifted to the right."""
    y = torch.zeros_like(x)
    y[:, :, 1:] = x[:, :, :-1].clone()
    y[:, :, 0] = -1.0
    return y.masked_fill_(y > 0.5, 9.0)


def _corner_through_a_transpose(x: Tensor) -> Tensor:
    y = x * 2
    y.transpose(1, 2)[:, -1, ::2].mul_(3)
    return y


def _last_by_a_negative_axis(x: Tensor) -> Tensor:
    y = x.cumsum(-1)
    y.select(-1, -1).zero_()
    return y


def _read_before(x: Tensor) -> tuple[Tensor, Tensor]:
    y = x * 2
    before = y.sum(dim=1)
    y[:, 1] += 1
    return before, y


def _of_a_reshaped_tensor(x: Tensor) -> Tensor:
    """As tables of positions are made."""
    y = torch.cat([x.sin(), x.cos()], dim=1).view(x.shape[0], -1)
    y[:, 3] = 0
    return y * 2


PARTS: list[Callable[..., Any]] = [
    _of_a_reshaped_tensor, _column, _shifted, _last_by_a_negative_axis, _read_before, _corner_through_a_transpose,
]  # fmt: skip


@pytest.mark.parametrize("function", PARTS)
def test_a_write_to_a_part_takes_no_program_apart(
    function: Callable[..., Any], taken_apart: list[int], tmp_path: Path
) -> None:
    path = tmp_path / "model.onnx"
    result = exported(function, make, DIMS, {"batch": 2, "length": 5}, path)
    assert not taken_apart
    assert result.attempts[-1].inlined
    assert result.attempts[-1].forced_by == ()
    assert not wrong_sizes(function, make, SIZES, path)


def _part_taken_before(x: Tensor) -> tuple[Tensor, Tensor]:
    y = x * 2
    part = y[:, 0]
    y[:, 0] = 7.0
    return part, y


def _part_given_back(x: Tensor) -> tuple[Tensor, Tensor]:
    y = x * 2
    part = y[:, 0].mul_(3)
    y += 1
    return part, y


def _from_itself(x: Tensor) -> Tensor:
    y = x * 2
    y[:, 1:] = y[:, :-1].clone() + y[:, 1:]
    y[:, 0] += y[:, 1]
    return y


def _overlapping(x: Tensor) -> Tensor:
    y = x * 2
    y[:, 2:] += y[:, :2]
    return y


def _spread(x: Tensor) -> Tensor:
    y = x * 2
    y[:, 1:3] = x[:, :1]
    return y


def _narrowed(x: Tensor) -> Tensor:
    y = x * 2
    y[:, 1] = x[:, 0].double() / 3
    return y


def _of_the_input(x: Tensor) -> Tensor:
    x = x.reshape(x.shape)
    x[:, 0] = 3.0
    return x


def _of_a_reshaped_tensor_that_is_used(x: Tensor) -> tuple[Tensor, Tensor]:
    y = x.sin()
    z = y.view(x.shape[0], -1)
    z[:, 3] = 0
    z += 1
    return y, z


SHARED: list[Callable[..., Any]] = [
    _part_taken_before, _part_given_back, _from_itself, _overlapping, _spread, _narrowed, _of_the_input,
    _of_a_reshaped_tensor_that_is_used,
]  # fmt: skip


@pytest.mark.parametrize("function", SHARED)
def test_a_write_to_a_part_is_seen_by_all_who_share_it(function: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    exported(function, make, DIMS, {"batch": 2, "length": 5}, path)
    assert not wrong_sizes(function, make, SIZES, path)


# ---- operators without a translation

FUNCTIONS: dict[str, tuple[Callable[[Tensor], Any], str]] = {
    "one result": (lambda x: torch.trapezoid(x, dim=1), "aten.trapezoid.dx"),
    "several results": (lambda x: tuple(torch.unsafe_chunk(x, 2, 2)), "aten.unsafe_chunk.default"),
    "one of several": (lambda x: torch.unsafe_chunk(x, 2, 2)[1], "aten.unsafe_chunk.default"),
    "computes with sizes": (lambda x: torch.tensordot(x, x, ([1], [1])), "aten.tensordot.default"),
    "twice": (lambda x: F.softshrink(x) + F.softshrink(2 * x, 0.1), "aten.softshrink.default"),
    "its result is the model's, twice": (lambda x: (y := x.rot90(1, (0, 1)), y), "aten.rot90.default"),
}


class Around(nn.Module):
    def __init__(self, function: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.layer, self.function = nn.Linear(4, 4), function

    def forward(self, x: Tensor) -> Any:
        return self.function(self.layer(x))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_it_alone_is_replaced(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def taken_apart(*_: Any) -> Any:
        raise AssertionError("the whole program is run again")

    monkeypatch.setattr(torch.export.ExportedProgram, "run_decompositions", taken_apart)
    function, operator = FUNCTIONS[name]
    torch.manual_seed(0)
    model, path = Around(function).eval(), tmp_path / "m.onnx"
    result = anyshape.export(model, (torch.randn(3, 5, 4),), path, dims={"x": "batch seq 4"}, quick=True)
    attempt = result.attempts[-1]
    assert (attempt.strategy, attempt.inlined, attempt.forced_by) == ("torch.export", (operator,), ())
    assert all(is_right(path, model, (torch.randn(*sizes, 4),)) for sizes in ((2, 2), (7, 3), (4, 11)))


class Kept(nn.Module):
    """How many rows are kept is another formula for few of them."""

    def forward(self, x: Tensor) -> int:
        return x.shape[0] - 3 if x.shape[0] > 6 else x.shape[0]


class Beginning(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.kept = Kept()

    def forward(self, x: Tensor) -> Tensor:
        return x[: self.kept(x)] * 2


def test_a_size_that_a_branch_chooses_is_read_as_it_is(tmp_path: Path) -> None:
    model, path = Beginning().eval(), tmp_path / "m.onnx"
    result = anyshape.export(model, (torch.randn(5, 4),), path, dims={"x": "n 4"}, quick=True)
    attempt = result.attempts[-1]
    assert attempt.strategy == "torch.export with branches and loops"
    assert (attempt.inlined, attempt.forced_by) == (("aten.item.default",), ())
    assert all(is_right(path, model, (torch.randn(n, 4),)) for n in (1, 6, 7, 11))


def test_what_writes_to_a_view_takes_the_whole_program(tmp_path: Path) -> None:
    def written(x: Tensor) -> Tensor:
        y = torch.trapezoid(x, dim=1)
        y.transpose(0, 1)[0].mul_(2.0)
        return y

    torch.manual_seed(0)
    model, path = Around(written).eval(), tmp_path / "m.onnx"
    result = anyshape.export(model, (torch.randn(3, 5, 4),), path, dims={"x": "batch seq 4"}, quick=True)
    assert result.attempts[-1].inlined == ()
    assert result.attempts[-1].forced_by == ("aten.mul_.Tensor", "aten.trapezoid.dx")
    assert all(is_right(path, model, (torch.randn(*sizes, 4),)) for sizes in ((2, 2), (7, 3), (4, 11)))


def test_what_cannot_be_translated_then_takes_the_whole_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anyshape.conversion.speed.stages_left_out._inlines_all", lambda *_: True)  # though nothing was
    torch.manual_seed(0)
    model, path = Around(lambda x: torch.trapezoid(x, dim=1)).eval(), tmp_path / "m.onnx"
    result = anyshape.export(model, (torch.randn(3, 5, 4),), path, dims={"x": "batch seq 4"}, quick=True)
    attempt = result.attempts[-1]
    assert (attempt.strategy, attempt.inlined, attempt.forced_by) == ("torch.export", (), ("aten.trapezoid.dx",))
    assert is_right(path, model, (torch.randn(7, 3, 4),))


def test_complex_numbers_are_left_to_torch(tmp_path: Path) -> None:
    def there_and_back(x: Tensor) -> Tensor:
        window = torch.hann_window(16)
        spectrum = torch.stft(x.flatten(1), 16, 4, window=window, return_complex=True)
        return torch.istft(spectrum, 16, 4, window=window)

    torch.manual_seed(0)
    model, path = Around(there_and_back).eval(), tmp_path / "m.onnx"
    result = anyshape.export(
        model, (torch.randn(2, 9, 4),), path, dims={"x": "batch seq 4"}, sizes={"seq": "5.."}, quick=True
    )
    assert result.attempts[-1].strategy == "torch.export"
    assert is_right(path, model, (torch.randn(3, 7, 4),))
