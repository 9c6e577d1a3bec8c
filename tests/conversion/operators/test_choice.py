"""What values choose, count or order, whose size is known at run time only; comparisons that decide in the file."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.conversion.functions import exported, operators, table, wrong_results, wrong_sizes, wrong_sizes_of

NAN = float("nan")

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


# ---- values that ONNX's kernels do not order, and what is counted


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_nan_is_larger_than_all(dtype: torch.dtype) -> None:
    x = torch.tensor([[3.0, NAN, -1.0, torch.inf], [2.0, -torch.inf, 7.0, 0.5], [1.0, 3e4, NAN, NAN]], dtype=dtype)
    functions = {
        "extremes": lambda x: (x.amax(1), x.amin((0, 1)), x.max(), x.min(), *torch.aminmax(x, dim=0)),
        "extremes with places": lambda x: (
            *x.max(1),
            *x.min(0, keepdim=True),
            x.argmax(),
            x.argmin(1),
            x[:2].argmax(1),
        ),
        "order": lambda x: (*x.sort(dim=1, stable=True), *x.sort(dim=0, descending=True, stable=True)),
        "topmost": lambda x: (x.topk(2).values, x.topk(2, largest=False, dim=0).values, x.kthvalue(2, 0).values),
        "medians": lambda x: (*x.median(1), x.median(), *x[1:].nanmedian(1), x.nanmedian()),
        "running": lambda x: (*x.cummax(1), *x.cummin(0)),
        "places": lambda x: torch.bucketize(x, x.new_tensor([0.0, 1.0, 3.0]), right=True),
    }
    assert wrong_results(functions, x) == []


def test_repeats_and_frequent_values() -> None:
    x = torch.tensor([[2, 2, 0, 0, 0, 1], [2, 2, 0, 5, 5, 1], [2, 2, 0, 5, 5, 1]])
    functions = {
        "mode": lambda x: (x.mode().values, x.float().mode(0, keepdim=True).values, (x > 1).mode(1).values),
        "without repeats": lambda x: torch.unique_consecutive(x, return_inverse=True, return_counts=True),
        "without repeated rows": lambda x: torch.unique_consecutive(x, dim=0, return_inverse=True),
    }
    assert wrong_results(functions, x) == []


def test_histograms_with_edges() -> None:
    x = torch.tensor([0.0, 0.1, 0.25, 0.5, 1.0, 1.5, 2.0, -3.0, 4.0])
    functions = {
        "within": lambda x: (*torch.histogram(x, 4, range=(0.0, 2.0)), *torch.histogram(x, 3)),
        "weighted": lambda x: (
            *torch.histogram(x, 4, range=(0.0, 2.0), weight=x),
            *torch.histogram(x, 5, density=True),
        ),
        "between": lambda x: torch.histogram(x, x.new_tensor([-1.0, 0.1, 0.5, 2.0])),
    }
    assert wrong_results(functions, x) == []


def test_counts_of_tiny_values_and_norms_of_nan() -> None:
    x = torch.tensor([[-1e-30, 1e-30, 0.5], [NAN, -2.0, 1.0]])
    functions = {
        "histc": lambda x: (torch.histc(x[0], 4, -1, 1), torch.histc(x[0] * 1e-30, 3), torch.histc(x[1, 1:], 3, 0, 1)),
        "norms": lambda x: (
            torch.linalg.vector_norm(x, float("inf"), dim=1),
            torch.linalg.vector_norm(x, -float("inf")),
        ),
    }
    assert wrong_results(functions, x) == []


def test_nan_is_sorted_to_the_end_however_the_sort_is_asked_for() -> None:
    x = torch.tensor([[3.0, NAN, -1.0, float("inf"), 2.0], [0.0, 1.0, NAN, NAN, -2.0]])
    functions = {"sort": lambda x: (x.sort()[0], x.sort(dim=0, descending=True)[0], torch.msort(x))}
    assert wrong_results(functions, x) == []


def test_running_products_come_back_from_what_float32_cannot_hold() -> None:
    functions = {"cumprod": lambda x: x.cumprod(0)}
    assert wrong_results(functions, torch.tensor([1e30, -1e30, 0.0, 2.0])) == []


def test_a_norm_of_one_number_neither_overflows_nor_vanishes() -> None:
    norms = lambda x: tuple(torch.linalg.vector_norm(x, kind) for kind in (0, 1, 4, float("inf")))  # noqa: E731
    functions = {"norms": norms, "along an axis": lambda x: torch.linalg.vector_norm(x, dim=0)}
    for value in (-2.5, 0.0):
        assert wrong_results(functions, torch.tensor(value)) == []
