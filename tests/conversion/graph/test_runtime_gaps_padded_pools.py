"""Zeros around the input of a max pool count, also where all numbers are negative."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import anyshape
from tests.running import is_right


class Pooled(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.max_pool2d(F.pad(x, (1, 1, 1, 1)), 3, 2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.float64], ids=str)
def test_zeros_before_a_max_pool_stay_zeros(dtype: torch.dtype, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    calls = [-torch.rand(sizes).to(dtype) - 1 for sizes in ((2, 3, 9, 12), (1, 3, 1, 1), (3, 3, 8, 5))]
    result = anyshape.export(Pooled(), (calls[0],), path, dims={"x": "batch 3 height width"}, quick=True)
    assert [attempt.strategy for attempt in result.attempts] == ["torch.export"]
    assert all(is_right(path, Pooled(), (call,)) for call in calls)
