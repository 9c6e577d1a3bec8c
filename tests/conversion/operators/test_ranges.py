"""Values spread over a length that is a size: what torch gives, down to a length of one."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from tests.conversion.functions import exported, table, wrong_sizes, wrong_sizes_of

SPREAD = {
    "linspace": lambda x: x * torch.linspace(-1, 2, x.shape[1]),
    "logspace": lambda x: x * torch.logspace(0, 1, x.shape[1], base=2.0),
    "periodic window": lambda x: x * torch.hann_window(x.shape[1]),
    "symmetric window": lambda x: x * torch.hamming_window(x.shape[1], periodic=False),
}


@pytest.mark.parametrize("name", SPREAD)
def test_values_spread_over_a_size(name: str, tmp_path: Path) -> None:
    assert wrong_sizes_of(SPREAD[name], table, tmp_path / "m.onnx") == []


@pytest.mark.parametrize("align_corners", [False, True])
def test_a_grid_of_any_size(align_corners: bool, tmp_path: Path) -> None:
    def grid(theta: torch.Tensor, image: torch.Tensor) -> torch.Tensor:
        return F.affine_grid(theta, list(image.shape), align_corners=align_corners)

    make = lambda b, h, w: (torch.randn(b, 2, 3), torch.zeros(b, 1, h, w))  # noqa: E731
    path = tmp_path / "m.onnx"
    exported(grid, make, ["b 2 3", "b 1 h w"], {"b": 2, "h": 4, "w": 5}, path)
    assert wrong_sizes(grid, make, [{"b": 1, "h": 2, "w": 9}, {"b": 3, "h": 7, "w": 2}], path) == []
