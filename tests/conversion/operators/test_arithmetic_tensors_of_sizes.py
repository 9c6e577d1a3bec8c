"""Tensors made of sizes hold those of the call, in whatever way and nesting they are made."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from tests.conversion.functions import exported, wrong_sizes


def _levels(x: Tensor) -> Tensor:
    """As detectors hold the shapes of their feature maps, one of them halved."""
    height, width = x.shape
    shapes = [(height, width), ((height + 1) // 2, (width + 1) // 2)]
    levels = torch.as_tensor(shapes, dtype=torch.long)
    starts = torch.cat((levels.new_zeros(1), levels.prod(1).cumsum(0)))
    scale = x.new_tensor([height / 2, width]) * torch.asarray([width, 3])
    return x.sum() + starts + torch.as_tensor(height) * 2 + (levels / scale).sum()


def _map(h: int, w: int) -> tuple[Tensor, ...]:
    return (torch.randn(h, w),)


def test_sizes_in_nested_containers_are_not_constants(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    result = exported(_levels, _map, ["h w"], {"h": 5, "w": 7}, path)
    assert [sentence for sentence in result.repairs if sentence.endswith("of sizes")] == [
        "torch.as_tensor: of sizes",
        "x.new_tensor: of sizes",
        "torch.asarray: of sizes",
    ]
    assert wrong_sizes(_levels, _map, [{"h": h, "w": w} for h, w in ((1, 1), (2, 9), (8, 3))], path) == []
