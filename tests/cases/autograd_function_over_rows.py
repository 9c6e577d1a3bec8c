"""A function with a gradient of its own, mapped over rows with torch.vmap."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function

dims = {"values": "batch n"}
sizes = {"batch": (3, [1, 2]), "n": (5, [1, 12])}
exports = True


class Normalised(Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(row: Tensor) -> Tensor:  # type: ignore[override]
        return row / (row.abs().sum() + 1)

    @staticmethod
    def setup_context(context: Any, inputs: Any, output: Any) -> None:
        context.save_for_backward(output)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Any:
        return gradient


class OverRows(nn.Module):
    def forward(self, values: Tensor) -> Tensor:
        return torch.vmap(Normalised.apply)(values)


def model() -> nn.Module:
    torch.manual_seed(0)
    return OverRows().eval()


def inputs(batch: int, n: int) -> tuple[object, ...]:
    return (torch.randn(batch, n),)
