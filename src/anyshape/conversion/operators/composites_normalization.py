"""Batch and group normalisation; of groups by ONNX's InstanceNormalization, a group as one channel.

ONNX's own GroupNormalization takes the variance as the difference of two means. In ONNX Runtime that loses a hundred
times as much as PyTorch where values lie close together, as in feature maps of a few pixels, and takes longer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir

from anyshape.conversion.operators.onnx_words import op
from anyshape.conversion.operators.onnx_words_shapes import DOUBLE, FLOAT, number, rank, whole


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
    # ONNX Runtime's operator knows floats alone
    spread = _along(groups, [2], eps) if x.dtype == DOUBLE else _in_floats(groups, num_groups, eps)
    result = op.Reshape(op.CastLike(spread, x), op.Shape(x))
    return _scaled(result, weight, bias, x)


def _in_floats(groups: ir.Value, many: int, eps: float) -> Any:
    """As PyTorch computes halves, too."""
    ones, zeros = (op.Constant(value=ir.tensor([value] * many, dtype=FLOAT)) for value in (1.0, 0.0))
    return op.InstanceNormalization(op.Cast(groups, to=FLOAT), ones, zeros, epsilon=eps)


def _along(x: ir.Value, axes: Sequence[int], eps: float) -> Any:
    """Normalised by its own mean and variance along some axes."""
    centred = op.Sub(x, op.ReduceMean(x, whole(*axes), keepdims=True))
    variance = op.ReduceMean(op.Mul(centred, centred), whole(*axes), keepdims=True)
    return op.Div(centred, op.Sqrt(op.Add(variance, number(eps, x))))


def _batch_norm(
    x: ir.Value, weight: Any, bias: Any, mean: Any, variance: Any, training: bool, momentum: float, eps: float,
    cudnn_enabled: bool = False,
) -> Any:  # fmt: skip
    del cudnn_enabled
    if training or mean is None:
        result = _along(x, [axis for axis in range(rank(x)) if axis != 1], eps)
        return _scaled(result, weight, bias, x)
    weight = op.Expand(number(1.0, mean), op.Shape(mean)) if weight is None else weight
    bias = op.Expand(number(0.0, mean), op.Shape(mean)) if bias is None else bias
    return op.BatchNormalization(x, weight, bias, mean, variance, epsilon=eps, momentum=1.0 - momentum)


def _scaled(result: Any, weight: Any, bias: Any, x: ir.Value) -> Any:
    if weight is not None:
        result = op.Mul(result, _beside(weight, x))
    return result if bias is None else op.Add(result, _beside(bias, x))


def _beside(value: ir.Value, x: ir.Value) -> Any:
    """A number for each channel, of which the other axes follow."""
    later = rank(x) - 2
    return op.Unsqueeze(value, whole(*range(1, 1 + later))) if later else value


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "aten::batch_norm": _batch_norm,
    "aten::group_norm": _group_norm,
}
