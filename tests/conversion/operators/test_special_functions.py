"""Functions that ONNX has no operator for, right at sizes never traced."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.conversion.functions import table, wrong_sizes_of

FUNCTIONS = {
    "gamma": lambda x: (torch.lgamma(x * 4), torch.lgamma(x.abs() + 0.01), torch.digamma(x * 3), torch.polygamma(1, x)),
    "normal": lambda x: (torch.erfinv(x.tanh()), torch.special.ndtri(x.sigmoid())),
    "pairs": lambda x: (torch.hypot(x, x + 1), torch.copysign(x, x.flip(1)), torch.fmax(x, x.flip(0))),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_without_an_operator(name: str, tmp_path: Path) -> None:
    assert wrong_sizes_of(FUNCTIONS[name], table, tmp_path / "m.onnx") == []
