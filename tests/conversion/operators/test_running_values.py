"""Running maxima, minima and products, one Scan each."""

from __future__ import annotations

from pathlib import Path

from tests.conversion.functions import operators, table, wrong_sizes_of


def test_running_values_of_any_length(tmp_path: Path) -> None:
    running = lambda x: (*x.round().cummax(1), x.cummin(0).values, x.cumprod(1), (x > 0).cumprod(1))  # noqa: E731
    assert wrong_sizes_of(running, table, tmp_path / "m.onnx") == []
    assert operators(tmp_path / "m.onnx").count("Scan") == 4
