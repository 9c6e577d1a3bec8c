"""Complex values, which ONNX keeps as real ones with one more axis."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.conversion.functions import table, wrong_sizes_of

FUNCTIONS = {
    "complex": lambda x: torch.view_as_real(torch.polar(x, x)[:, None].expand(-1, 2, -1)[:, 1] ** 2),
    "exponential of complex": lambda x: torch.view_as_real(torch.exp(torch.complex(x, x * 2))),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_complex_values_of_any_size(name: str, tmp_path: Path) -> None:
    assert wrong_sizes_of(FUNCTIONS[name], table, tmp_path / "m.onnx") == []


def test_complex_values_filled_and_repeated(tmp_path: Path) -> None:
    def moved(x: torch.Tensor) -> torch.Tensor:
        return torch.view_as_real(torch.complex(x, -x).masked_fill(x > 0, 2.0).repeat(2, 1))

    assert wrong_sizes_of(moved, table, tmp_path / "m.onnx") == []
