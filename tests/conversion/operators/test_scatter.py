"""Values written to places, at sizes never traced."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from tests.conversion.functions import image, table, wrong_sizes_of

OF_TABLES = {
    "diagonal": lambda x: (x.clone().diagonal().fill_(2), x.diagonal_scatter(x.diagonal() * 3)),
    "scatter beyond": lambda x: torch.zeros_like(x).scatter_add(1, x[:1].argsort(1), x),
    "scatter a size": lambda x: x.scatter(1, x.argsort(1)[:, :1], x.shape[1]),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_TABLES)
def test_writes_into_tables(name: str, tmp_path: Path) -> None:
    assert wrong_sizes_of(OF_TABLES[name], table, tmp_path / "m.onnx") == []


OF_IMAGES = {
    "unfolded and back": lambda x: F.fold(F.unfold(x, 2, padding=1), x.shape[-2:], 2, padding=1),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_IMAGES)
def test_frames_added_where_they_were_cut_out(name: str, tmp_path: Path) -> None:
    assert wrong_sizes_of(OF_IMAGES[name], image, tmp_path / "m.onnx") == []


REDUCTIONS = {
    reduce: lambda x, reduce=reduce: x.scatter_reduce(1, x.argsort(1) // 2, x, reduce, include_self=False)
    for reduce in ("sum", "mean", "amax", "prod")
}


@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_what_falls_on_one_place_is_reduced(reduce: str, tmp_path: Path) -> None:
    assert wrong_sizes_of(REDUCTIONS[reduce], table, tmp_path / "m.onnx") == []
