"""Group normalisation by ONNX's InstanceNormalization, a group as one channel.

ONNX's own GroupNormalization takes the variance as the difference of two means. In ONNX Runtime that loses a hundred
times as much as PyTorch where values lie close together, as in feature maps of a few pixels, and takes longer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir

from anyshape.conversion.translations.operators import op
from anyshape.conversion.translations.shapes import DOUBLE, FLOAT, number, rank, whole


def _group_norm(
    x: ir.Value,
    num_groups: int,
    weight: ir.Value | None = None,
    bias: ir.Value | None = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Any:
    del cudnn_enabled
    groups = op.Reshape(x, whole(0, num_groups, -1))
    spread = _in_doubles(groups, x, eps) if x.dtype == DOUBLE else _in_floats(groups, num_groups, eps)
    result = op.Reshape(op.CastLike(spread, x), op.Shape(x))
    if weight is not None:
        result = op.Mul(result, _beside(weight, x))
    return result if bias is None else op.Add(result, _beside(bias, x))


def _in_floats(groups: ir.Value, many: int, eps: float) -> Any:
    """As PyTorch computes halves, too."""
    ones, zeros = (op.Constant(value=ir.tensor([value] * many, dtype=FLOAT)) for value in (1.0, 0.0))
    return op.InstanceNormalization(op.Cast(groups, to=FLOAT), ones, zeros, epsilon=eps)


def _in_doubles(groups: ir.Value, x: ir.Value, eps: float) -> Any:
    """ONNX Runtime's operator knows floats alone."""
    centred = op.Sub(groups, op.ReduceMean(groups, whole(2)))
    variance = op.ReduceMean(op.Mul(centred, centred), whole(2))
    return op.Div(centred, op.Sqrt(op.Add(variance, number(eps, x))))


def _beside(value: ir.Value, x: ir.Value) -> Any:
    """A number for each channel, of which the other axes follow."""
    later = rank(x) - 2
    return op.Unsqueeze(value, whole(*range(1, 1 + later))) if later else value


TRANSLATIONS: dict[str, Callable[..., Any]] = {"aten::group_norm": _group_norm}
