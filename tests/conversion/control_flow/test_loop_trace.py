"""`control_flow.map`: one Scan whose body is traced once, over several tensors in containers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from functorch.experimental.control_flow import map as each
from torch import Tensor

from tests.conversion.functions import exported, operators, wrong_sizes


def _mixed(first: Tensor, second: Tensor, y: Tensor) -> Any:
    def body(pair: Any, y: Tensor) -> Any:
        mixed = pair["left"].cumsum(0) + pair["right"][0]
        return {"sum": mixed.sum(0), "row": [mixed * y]}

    found = each(body, {"left": first, "right": [second]}, y)
    return found["sum"], *found["row"]


def _inputs(n: int) -> tuple[Tensor, ...]:
    return torch.randn(n, 4), torch.randn(n, 4), torch.randn(4)


def test_a_mapped_body_becomes_one_scan(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    result = exported(_mixed, _inputs, ["n 4", "n 4", "4"], {"n": 3}, path)
    assert result.repairs == ("control_flow.map: kept as Scan",)
    assert operators(path).count("Scan") == 1
    assert wrong_sizes(_mixed, _inputs, [{"n": n} for n in (1, 4, 9)], path) == []
