"""An operator without a translation is replaced by itself; the rest of its program stays as it was traced."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import anyshape
from tests.running import is_right

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


def test_what_writes_and_has_no_operator_of_its_own_takes_the_whole_program(tmp_path: Path) -> None:
    def written(x: Tensor) -> Tensor:
        y = torch.trapezoid(x, dim=1)
        y.mul_(x[:, 0].double())
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
