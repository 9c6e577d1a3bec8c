"""An operator that computes in numpy, where no trace can follow: its translation is given with a decorator."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from onnxscript import opset18 as op
from torch import Tensor, nn

import anyshape

dims = {"values": "batch n"}
sizes = {"batch": (3, [1, 2]), "n": (5, [1, 12])}
exports = True


@torch.library.custom_op("anyshape_cases::running_total", mutates_args=())
def running_total(values: Tensor, axis: int, scale: float = 1.0) -> Tensor:
    return torch.from_numpy(np.cumsum(values.detach().numpy() * values.numpy().dtype.type(scale), axis=axis))


@running_total.register_fake
def _(values: Tensor, axis: int, scale: float = 1.0) -> Tensor:
    return torch.empty_like(values)


@anyshape.translation(running_total)
def _translated(values: Any, axis: int, scale: float = 1.0) -> Any:
    return op.CumSum(op.Mul(values, op.CastLike(scale, values)), op.Constant(value_int=axis))


class WithTranslation(nn.Module):
    def forward(self, values: Tensor) -> Tensor:
        return running_total(torch.tanh(values), 1, 0.5) + running_total(values, 0)


def model() -> nn.Module:
    torch.manual_seed(0)
    return WithTranslation().eval()


def inputs(batch: int, n: int) -> tuple[object, ...]:
    return (torch.randn(batch, n),)
