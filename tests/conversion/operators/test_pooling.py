"""Pooling over windows that follow the size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tests.conversion.functions import exported, image, operators, wrong_results, wrong_sizes_of

FUNCTIONS = {
    "adaptive mean": lambda x: F.adaptive_avg_pool2d(x, (2, 5)),
    "adaptive maximum": lambda x: F.adaptive_max_pool2d(x, (4, 20)),
    "area": lambda x: F.interpolate(x, size=(3, 8), mode="area"),
    "another divisor": lambda x: F.avg_pool2d(x, 3, 2, 1, divisor_override=5),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_windows_follow_the_size(name: str, tmp_path: Path) -> None:
    assert wrong_sizes_of(FUNCTIONS[name], image, tmp_path / "m.onnx") == []


@pytest.mark.parametrize("size", [1, (1, 1), (None, 1)])
def test_pooling_to_one_stays_a_reduction(size: Any, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    exported(lambda x: F.adaptive_avg_pool2d(x, size), image, ["b 3 h w"], {"b": 2, "h": 6, "w": 9}, path)
    assert set(operators(path)) <= {"ReduceMean", "GlobalAveragePool", "Identity"}


BY_SIZE = {
    "mean over all": lambda x: F.avg_pool2d(x, x.shape[2:]),
    "maximum of halves": lambda x: F.max_pool2d(x, (x.shape[2] // 2, 3), stride=(1, 2), ceil_mode=True),
    "places": lambda x: F.adaptive_max_pool2d(x, (None, 2), return_indices=True),
}


@pytest.mark.parametrize("name", BY_SIZE)
def test_windows_given_by_sizes(name: str, tmp_path: Path) -> None:
    assert wrong_sizes_of(BY_SIZE[name], image, tmp_path / "m.onnx") == []


def test_nan_stays_in_its_own_windows() -> None:
    x = torch.arange(70.0).reshape(1, 1, 7, 10)
    x[0, 0, 2, 3], x[0, 0, 6, 9] = torch.nan, torch.inf
    functions = {
        "adaptive": lambda x: (F.adaptive_avg_pool2d(x, (3, 4)), F.adaptive_avg_pool2d(x, (9, 12))),
        "area": lambda x: F.interpolate(x, (4, 6), mode="area"),
        "divided": lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, divisor_override=4),
    }
    assert wrong_results(functions, x) == []
