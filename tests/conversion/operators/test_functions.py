"""Operators that torch lacks, or translates for the traced size: each function right at sizes never traced."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tests.conversion.functions import exported, operators, wrong_sizes

TABLE = [{"b": 1, "t": 1}, {"b": 4, "t": 3}, {"b": 2, "t": 11}]
IMAGES = [{"b": 1, "h": 3, "w": 4}, {"b": 3, "h": 10, "w": 7}, {"b": 2, "h": 5, "w": 13}]
SQUARES = [{"b": 1, "n": 1}, {"b": 3, "n": 2}, {"b": 2, "n": 7}]


def table(b: int, t: int) -> tuple[Any, ...]:
    return (torch.randn(b, t),)


def image(b: int, h: int, w: int) -> tuple[Any, ...]:
    return (torch.randn(b, 3, h, w),)


def square(b: int, n: int) -> tuple[Any, ...]:
    return (torch.randn(b, n, n) + 3 * n * torch.eye(n),)


OF_TABLES = {
    "gamma": lambda x: (torch.lgamma(x * 4), torch.lgamma(x.abs() + 0.01), torch.digamma(x * 3), torch.polygamma(1, x)),
    "normal": lambda x: (torch.erfinv(x.tanh()), torch.special.ndtri(x.sigmoid())),
    "pairs": lambda x: (torch.hypot(x, x + 1), torch.copysign(x, x.flip(1)), torch.fmax(x, x.flip(0))),
    "sort": lambda x: torch.sort(x.round(), dim=0, stable=True, descending=True),
    "sort of booleans": lambda x: torch.argsort(x > 0, dim=1, stable=True),
    "extremes": lambda x: (x.amin(), x.amax((0, 1), keepdim=True), (x > 0).amax(1), x.round().long().amin(-1)),
    "medians": lambda x: (x.median(), x.median(0).values, torch.nanmedian(x.log(), 1).values),
    "cumulative": lambda x: (*x.round().cummax(1), x.cummin(0).values, x.cumprod(1), (x > 0).cumprod(1)),
    "roll": lambda x: (x.roll(5, 1), x.roll(-2), x.roll((x.shape[1] // 2, 1), (1, 0))),
    "repeat": lambda x: (x.repeat_interleave(x.shape[1], dim=0), x.repeat_interleave(2)),
    "squeeze": lambda x: (x.squeeze(0) + 1, x[:, None].squeeze((1, 2))),
    "diagonal": lambda x: (x.clone().diagonal().fill_(2), x.diagonal_scatter(x.diagonal() * 3)),
    "counts": lambda x: (torch.bincount((x.abs() * 3).long().flatten(), minlength=4), torch.histc(x, 5)),
    "all or any": lambda x: (torch.ops.aten._is_all_true(x > -1), torch.ops.aten._is_any_true(x > 1)),
    "static number of places": lambda x: torch.nonzero_static(x > 0, size=6, fill_value=-7),
    "scatter beyond": lambda x: torch.zeros_like(x).scatter_add(1, x[:1].argsort(1), x),
    "scatter a size": lambda x: x.scatter(1, x.argsort(1)[:, :1], x.shape[1]),
    "powers of sizes": lambda x: (x ** x.shape[1], x % (x.shape[1] / 3), x * (1 / x.shape[1])),
    "slopes of sizes": lambda x: (F.elu(x, 0.1 * x.shape[1]), torch.addcmul(x, x, x, value=x.shape[1] / 3)),
    "complex": lambda x: torch.view_as_real(torch.polar(x, x)[:, None].expand(-1, 2, -1)[:, 1] ** 2),
    "exponential of complex": lambda x: torch.view_as_real(torch.exp(torch.complex(x, x * 2))),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_TABLES)
def test_functions_of_tables(name: str, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    exported(OF_TABLES[name], table, ["b t"], {"b": 3, "t": 7}, path)
    assert wrong_sizes(OF_TABLES[name], table, TABLE, path) == []


OF_IMAGES = {
    "adaptive mean": lambda x: F.adaptive_avg_pool2d(x, (2, 5)),
    "adaptive maximum": lambda x: F.adaptive_max_pool2d(x, (4, 20)),
    "area": lambda x: F.interpolate(x, size=(3, 8), mode="area"),
    "antialiased": lambda x: F.interpolate(x, scale_factor=(0.7, 0.6), mode="bicubic", antialias=True),
    "another divisor": lambda x: F.avg_pool2d(x, 3, 2, 1, divisor_override=5),
    "unfolded and back": lambda x: F.fold(F.unfold(x, 2, padding=1), x.shape[-2:], 2, padding=1),
}


@pytest.mark.parametrize("name", OF_IMAGES)
def test_functions_of_images(name: str, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    exported(OF_IMAGES[name], image, ["b 3 h w"], {"b": 2, "h": 6, "w": 9}, path)
    assert wrong_sizes(OF_IMAGES[name], image, IMAGES, path) == []


OF_SQUARES = {
    "inverse": torch.inverse,
    "determinant": torch.slogdet,
    "solution": lambda a: torch.linalg.solve(a, a[..., :1]),
    "solution from the right": lambda a: torch.linalg.solve(a, a[:, :1], left=False),
    "triangles": lambda a: torch.linalg.solve_triangular(a, a.mT, upper=True, unitriangular=True),
    "factor": lambda a: torch.linalg.cholesky(a @ a.mT, upper=True),
    "exponential": lambda a: torch.matrix_exp(a / 40),
}


@pytest.mark.parametrize("name", OF_SQUARES)
def test_matrices_whose_size_varies(name: str, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    exported(OF_SQUARES[name], square, ["b n n"], {"b": 2, "n": 4}, path)
    assert wrong_sizes(OF_SQUARES[name], square, SQUARES, path) == []


@pytest.mark.parametrize("size", [1, (1, 1), (None, 1)])
def test_pooling_to_one_stays_a_reduction(size: Any, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    exported(lambda x: F.adaptive_avg_pool2d(x, size), image, ["b 3 h w"], {"b": 2, "h": 6, "w": 9}, path)
    assert set(operators(path)) <= {"ReduceMean", "GlobalAveragePool", "Identity"}


def test_equal_rows_have_no_distance(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    distances = lambda x: torch.cdist(x * 100, x * 100)  # noqa: E731
    exported(distances, lambda n: (torch.randn(n, 3),), ["n 3"], {"n": 5}, path)
    assert wrong_sizes(distances, lambda n: (torch.randn(n, 3),), [{"n": 1}, {"n": 20}], path) == []


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 2.5, math.inf])
def test_distances_in_every_norm(p: float, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    make = lambda b, n, m: (torch.randn(b, n, 3), torch.randn(m, 3))  # noqa: E731
    distances = lambda x, y: torch.cdist(x, y[None], p=p)  # noqa: E731
    exported(distances, make, ["b n 3", "m 3"], {"b": 2, "n": 5, "m": 4}, path)
    assert wrong_sizes(distances, make, [{"b": 1, "n": 1, "m": 1}, {"b": 3, "n": 2, "m": 9}], path) == []


def test_grouped_products_of_transformers(tmp_path: Path) -> None:
    pytest.importorskip("transformers.integrations.moe")
    path = tmp_path / "m.onnx"

    def make(n: int) -> tuple[Any, ...]:
        ends = torch.cat([torch.randint(0, n + 1, (3,)).sort().values, torch.tensor([n])])
        return torch.randn(n, 5), torch.randn(4, 5, 6), ends.to(torch.int32)

    grouped = lambda x, weight, ends: torch.ops.transformers.grouped_mm_fallback(x, weight, ends)  # noqa: E731
    torch.manual_seed(0)
    exported(grouped, make, ["n 5", "_ _ _", "_"], {"n": 6}, path)
    assert wrong_sizes(grouped, make, [{"n": 1}, {"n": 2}, {"n": 15}], path) == []
