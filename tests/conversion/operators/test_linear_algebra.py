"""Matrices of any size, in batches, distances between rows, and products of groups of rows."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import anyshape
from tests.conversion.functions import exported, square, wrong_results, wrong_sizes, wrong_sizes_of

FUNCTIONS = {
    "inverse": torch.inverse,
    "determinant": torch.slogdet,
    "solution": lambda a: torch.linalg.solve(a, a[..., :1]),
    "solution from the right": lambda a: torch.linalg.solve(a, a[:, :1], left=False),
    "triangles": lambda a: torch.linalg.solve_triangular(a, a.mT, upper=True, unitriangular=True),
    "factor": lambda a: torch.linalg.cholesky(a @ a.mT, upper=True),
    "exponential": lambda a: torch.matrix_exp(a / 40),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_matrices_whose_size_varies(name: str, tmp_path: Path) -> None:
    assert wrong_sizes_of(FUNCTIONS[name], square, tmp_path / "m.onnx") == []


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


# ---- grouped products: each group of rows by the weights of its own, whatever the lengths of the groups


SIZES = [{"n": 1}, {"n": 2}, {"n": 15}]


def _groups(n: int) -> tuple[Any, ...]:
    ends = torch.cat([torch.randint(0, n + 1, (3,)).sort().values, torch.tensor([n])])
    return torch.randn(n, 4), torch.randn(4, 4, 8), ends.to(torch.int32)


def _check(grouped: Any, path: Path) -> None:
    torch.manual_seed(0)
    exported(grouped, _groups, ["n 4", "_ _ _", "_"], {"n": 6}, path)
    assert wrong_sizes(grouped, _groups, SIZES, path) == []


def test_grouped_products_of_transformers(tmp_path: Path) -> None:
    pytest.importorskip("transformers.integrations.moe")
    _check(lambda x, weight, ends: torch.ops.transformers.grouped_mm_fallback(x, weight, ends), tmp_path / "m.onnx")


@pytest.mark.skipif(not hasattr(F, "grouped_mm"), reason="this torch has no grouped_mm")
def test_grouped_products_of_torch(tmp_path: Path) -> None:
    _check(lambda x, weight, ends: F.grouped_mm(x, weight, offs=ends), tmp_path / "m.onnx")


def test_matrices_that_are_singular_or_hold_nan() -> None:
    singular = torch.tensor([[[1.0, 2.0], [2.0, 4.0]], [[0, 1], [1, 0]], [[1, float("nan")], [2, 3]]])
    functions = {
        "determinants": lambda a: (*torch.slogdet(a), torch.det(a)),
        "powers": lambda a: (torch.matrix_power(a, 0), torch.matrix_power(a[:2], 5), torch.matrix_power(a[1:2], -3)),
    }
    assert wrong_results(functions, singular) == []


def test_a_matrix_of_three_values_in_ties_is_no_reason_to_refuse_its_inverse() -> None:
    torch.manual_seed(3)
    result = anyshape.export(lambda x: torch.inverse(x), torch.randn(3, 3), dims={}, quick=True)
    assert result.verdict == "checked"


def test_the_other_triangle_of_a_factor_is_not_read() -> None:
    factor = torch.tensor([[2.0, 9.0, 9.0], [1.0, 3.0, 9.0], [0.5, -1.0, 1.5]])
    for upper in (False, True):
        solve = lambda a, upper=upper: torch.cholesky_solve(a, a, upper=upper)  # noqa: E731
        inverse = lambda a, upper=upper: torch.cholesky_inverse(a, upper=upper)  # noqa: E731
        assert wrong_results({"solve": solve}, factor) + wrong_results({"inverse": inverse}, factor) == []
    assert wrong_results({"no solution": lambda a: torch.cholesky_solve(a, 0 * a)}, factor) == []


def test_the_logarithm_of_a_determinant_that_overflows() -> None:
    for factor in (1e30, 1e-30, -1.0, 0.0):
        assert wrong_results({"logdet": torch.logdet}, factor * (torch.eye(3) + torch.ones(3, 3))) == []
