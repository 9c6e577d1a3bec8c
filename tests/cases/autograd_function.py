"""Functions with gradients of their own: one calls the other, with a size and a flag among the arguments."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable

dims = {"values": "batch n 4"}
sizes = {"batch": (3, [1, 2]), "n": (5, [1, 12])}
exports = True


class Clipped(Function):
    """`symbolic` is for the older exporter, and names an operator that no runtime has."""

    @staticmethod
    def symbolic(graph: Any, values: Any, limit: float) -> Any:
        return graph.op("no.such::Clipped", values, limit_f=limit)

    @staticmethod
    def forward(context: Any, values: Tensor, limit: float) -> Tensor:
        context.save_for_backward(values)
        return values.clamp(-limit, limit) if not context.needs_input_grad[1] else values

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradient: Tensor) -> Any:
        return gradient, None


class Grouped(Function):
    @staticmethod
    def forward(values: Tensor, rows: int, options: dict[str, bool]) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        clipped = Clipped.apply(values, 0.5)
        grouped = clipped.transpose(0, 1).reshape(rows, -1)
        return (grouped.exp() if options["exponential"] else grouped), clipped.sum(dim=(0, 1))

    @staticmethod
    def setup_context(context: Any, inputs: Any, output: Any) -> None:
        context.save_for_backward(inputs[0])

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> Any:
        return None, None, None


class AutogradFunction(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(4, 4)

    def forward(self, values: Tensor) -> Tensor:
        grouped, total = Grouped.apply(self.head(values), values.shape[1], {"exponential": True})
        return grouped.mean(dim=1, keepdim=True) + Clipped.apply(total, 2.0)


def model() -> nn.Module:
    torch.manual_seed(0)
    return AutogradFunction().eval()


def inputs(batch: int, n: int) -> tuple[object, ...]:
    return (torch.randn(batch, n, 4),)
