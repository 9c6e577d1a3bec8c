"""What values choose or count, whose size is known at run time only; comparisons that decide in the file."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.conversion.functions import exported, table, wrong_sizes, wrong_sizes_of

FUNCTIONS = {
    "repeat": lambda x: (x.repeat_interleave(x.shape[1], dim=0), x.repeat_interleave(2)),
    "counts": lambda x: (torch.bincount((x.abs() * 3).long().flatten(), minlength=4), torch.histc(x, 5)),
    "all or any": lambda x: (torch.ops.aten._is_all_true(x > -1), torch.ops.aten._is_any_true(x > 1)),
    "static number of places": lambda x: torch.nonzero_static(x > 0, size=6, fill_value=-7),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_choices_of_any_size(name: str, tmp_path: Path) -> None:
    assert wrong_sizes_of(FUNCTIONS[name], table, tmp_path / "m.onnx") == []


def test_values_under_a_mask_that_broadcasts(tmp_path: Path) -> None:
    masked = lambda x: torch.masked_select(x, x[:1] > -5).sum()  # noqa: E731
    assert wrong_sizes_of(masked, table, tmp_path / "m.onnx") == []


def _compared(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x if torch.equal(x, y) else y.cumsum(0)


def test_a_comparison_to_a_plain_truth_is_kept_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    different = lambda n: (torch.randn(n, 2), torch.randn(n, 2))  # noqa: E731
    equal = lambda n: (torch.ones(n, 2), torch.ones(n, 2))  # noqa: E731
    result = exported(_compared, different, ["n 2", "n 2"], {"n": 3}, path)
    assert "torch.equal: compared in the file" in result.repairs
    assert wrong_sizes(_compared, different, [{"n": 1}, {"n": 5}], path) == []
    assert wrong_sizes(_compared, equal, [{"n": 1}, {"n": 5}], path) == []
