"""Sorting, medians and extremes along axes of any length."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.conversion.functions import table, wrong_sizes_of

FUNCTIONS = {
    "sort": lambda x: torch.sort(x.round(), dim=0, stable=True, descending=True),
    "sort of booleans": lambda x: torch.argsort(x > 0, dim=1, stable=True),
    "extremes": lambda x: (x.amin(), x.amax((0, 1), keepdim=True), (x > 0).amax(1), x.round().long().amin(-1)),
    "medians": lambda x: (x.median(), x.median(0).values, torch.nanmedian(x.log(), 1).values),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_order_of_any_length(name: str, tmp_path: Path) -> None:
    assert wrong_sizes_of(FUNCTIONS[name], table, tmp_path / "m.onnx") == []


SEARCHES = {
    "left": lambda x: torch.searchsorted(x.sort(1).values, x.round()),
    "right": lambda x: torch.bucketize(x, torch.tensor([-1.0, 0.0, 0.5]), right=True, out_int32=True),
    "among": lambda x: torch.isin(x.round(), torch.tensor([0.0, 1.0]), invert=True),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_places_among_sorted_values(name: str, tmp_path: Path) -> None:
    assert wrong_sizes_of(SEARCHES[name], table, tmp_path / "m.onnx") == []
