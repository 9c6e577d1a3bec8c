"""Group normalisation is as exact as PyTorch's, also of values that lie close together."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from tests.conversion.functions import exported, wrong_sizes


class Twice(nn.Module):
    """With weights over a map, and without over its means."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(4, 8, dtype=dtype)
        nn.init.normal_(self.norm.weight)
        nn.init.normal_(self.norm.bias)

    def forward(self, *tensors: Tensor) -> tuple[Tensor, Tensor]:
        (x,) = tensors
        return self.norm(x), nn.functional.group_norm(x.mean((2, 3)), 2)


def _map(dtype: torch.dtype, n: int, h: int, w: int) -> tuple[Tensor]:
    """Far from zero, and close together."""
    return (torch.randn(n, 8, h, w, dtype=dtype) * 0.05 + 10,)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_small_variance_beside_a_large_mean_is_kept(dtype: torch.dtype, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, path = Twice(dtype).eval(), tmp_path / "model.onnx"
    make = partial(_map, dtype)
    exported(model, make, ["n 8 h w"], {"n": 2, "h": 5, "w": 7}, path)
    sizes = [{"n": n, "h": h, "w": w} for n, h, w in ((1, 1, 1), (1, 1, 2), (3, 2, 2), (2, 9, 6))]
    assert wrong_sizes(model, make, sizes, path) == []
