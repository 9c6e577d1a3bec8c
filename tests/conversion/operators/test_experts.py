"""Grouped products: each group of rows by the weights of its own, whatever the lengths of the groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tests.conversion.functions import exported, wrong_sizes

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
