"""What values choose, count or order, whose size is known at run time only; comparisons that decide in the file."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.conversion.functions import exported, operators, table, wrong_sizes, wrong_sizes_of

FUNCTIONS = {
    "repeat": lambda x: (x.repeat_interleave(x.shape[1], dim=0), x.repeat_interleave(2)),
    "counts": lambda x: (torch.bincount((x.abs() * 3).long().flatten(), minlength=4), torch.histc(x, 5)),
    "all or any": lambda x: (torch.ops.aten._is_all_true(x > -1), torch.ops.aten._is_any_true(x > 1)),
    "static number of places": lambda x: torch.nonzero_static(x > 0, size=6, fill_value=-7),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_choices_of_any_size(name: str, tmp_path: Path) -> None:
    assert wrong_sizes_of(FUNCTIONS[name], table, tmp_path / "m.onnx") == []


def test_values_under_a_mask_that_broadcasts(tmp_path: Path) -> None:
    masked = lambda x: torch.masked_select(x, x[:1] > -5).sum()  # noqa: E731
    assert wrong_sizes_of(masked, table, tmp_path / "m.onnx") == []


def _compared(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x if torch.equal(x, y) else y.cumsum(0)


def test_a_comparison_to_a_plain_truth_is_kept_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    different = lambda n: (torch.randn(n, 2), torch.randn(n, 2))  # noqa: E731
    equal = lambda n: (torch.ones(n, 2), torch.ones(n, 2))  # noqa: E731
    result = exported(_compared, different, ["n 2", "n 2"], {"n": 3}, path)
    assert "torch.equal: compared in the file" in result.repairs
    assert wrong_sizes(_compared, different, [{"n": 1}, {"n": 5}], path) == []
    assert wrong_sizes(_compared, equal, [{"n": 1}, {"n": 5}], path) == []


# ---- sorting, medians and extremes along axes of any length


ORDERS = {
    "sort": lambda x: torch.sort(x.round(), dim=0, stable=True, descending=True),
    "sort of booleans": lambda x: torch.argsort(x > 0, dim=1, stable=True),
    "extremes": lambda x: (x.amin(), x.amax((0, 1), keepdim=True), (x > 0).amax(1), x.round().long().amin(-1)),
    "medians": lambda x: (x.median(), x.median(0).values, torch.nanmedian(x.log(), 1).values),
}  # fmt: skip


@pytest.mark.parametrize("name", ORDERS)
def test_order_of_any_length(name: str, tmp_path: Path) -> None:
    assert wrong_sizes_of(ORDERS[name], table, tmp_path / "m.onnx") == []


SEARCHES = {
    "left": lambda x: torch.searchsorted(x.sort(1).values, x.round()),
    "right": lambda x: torch.bucketize(x, torch.tensor([-1.0, 0.0, 0.5]), right=True, out_int32=True),
    "among": lambda x: torch.isin(x.round(), torch.tensor([0.0, 1.0]), invert=True),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_places_among_sorted_values(name: str, tmp_path: Path) -> None:
    assert wrong_sizes_of(SEARCHES[name], table, tmp_path / "m.onnx") == []


# ---- running maxima, minima and products, one Scan each


def test_running_values_of_any_length(tmp_path: Path) -> None:
    running = lambda x: (*x.round().cummax(1), x.cummin(0).values, x.cumprod(1), (x > 0).cumprod(1))  # noqa: E731
    assert wrong_sizes_of(running, table, tmp_path / "m.onnx") == []
    assert operators(tmp_path / "m.onnx").count("Scan") == 4


@pytest.mark.parametrize("scale", [1.0, 1000.0])
def test_running_sums_of_exponentials_neither_overflow_nor_vanish(scale: float, tmp_path: Path) -> None:
    running = lambda x: ((x * scale).logcumsumexp(1), (x * -scale).logcumsumexp(0))  # noqa: E731
    assert wrong_sizes_of(running, table, tmp_path / "m.onnx") == []
