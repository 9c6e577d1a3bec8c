"""Operators that torch makes of others, and for which it would run the whole program again to take them apart."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import onnx_ir as ir

from anyshape.conversion.operators.onnx_words import (
    DOUBLE,
    FLOAT,
    bits,
    exact,
    for_each_axis,
    from_front,
    literal,
    number,
    op,
    rank,
    record,
    static_size,
    torchs_translation,
    vector,
    whole,
)  # fmt: skip

# ---- types, bits, shapes and convolutions


_PARTS = {ir.DataType.COMPLEX64: FLOAT, ir.DataType.COMPLEX128: DOUBLE}


def _in_type(tensor: Any, dtype: Any = None, *_how: Any, **_layout: Any) -> Any:
    if dtype is None or int(dtype) < 0 or int(dtype) == int(tensor.dtype):
        return op.Identity(tensor)
    if ir.DataType(int(dtype)) in _PARTS:  # a last axis of a real and an imaginary part
        real = op.Unsqueeze(op.Cast(tensor, to=_PARTS[ir.DataType(int(dtype))]), whole(-1))
        return op.Pad(real, whole(*[0] * (2 * rank(tensor) + 1), 1))
    return op.Cast(tensor, to=int(dtype))


def _to_device(tensor: Any, _device: Any, dtype: Any = None, *_how: Any, **_layout: Any) -> Any:
    return _in_type(tensor, dtype)


def _like_other(tensor: Any, other: Any, *_how: Any, **_layout: Any) -> Any:
    return _in_type(tensor, other.dtype)


def _celu(x: ir.Value, alpha: float = 1.0) -> Any:
    """Torch's own translation computes whatever it is in float32."""
    if x.dtype != DOUBLE:
        return torchs_translation("nn.aten_celu")(x, alpha=alpha)
    return op.Mul(op.Elu(op.Div(x, exact(alpha))), exact(alpha))


def _reshape_as(tensor: Any, other: Any) -> Any:
    return op.Reshape(tensor, op.Shape(other), allowzero=1)


def _transposed_convolution(axes: int,
    tensor: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
    groups: int = 1, dilation: Any = 1,
) -> Any:  # fmt: skip
    stride, padding, output_padding, dilation = (
        for_each_axis(value, axes) for value in (stride, padding, output_padding, dilation)
    )
    wanted, is_single = output_padding, rank(tensor) == axes + 1
    if any(isinstance(one, ir.Value) for one in wanted):
        output_padding = [max(pair) - 1 for pair in zip(stride, dilation, strict=True)]
    result = op.ConvTranspose(
        op.Unsqueeze(tensor, whole(0)) if is_single else tensor, weight, bias, strides=stride,
        pads=[*padding, *padding], dilations=dilation, output_padding=output_padding, group=groups,
    )  # fmt: skip
    if wanted is not output_padding:  # `output_size=`: as much as may be added is cut to what is
        beyond = op.Sub(whole(*output_padding), vector(wanted))
        result = op.Slice(
            result, whole(*[0] * axes), op.Sub(op.Shape(result, start=2), beyond), whole(*range(2, axes + 2))
        )
    return op.Squeeze(result, whole(0)) if is_single else result


def _softmax(softmax: Callable[..., Any], x: ir.Value, dim: int, dtype: Any = None) -> Any:
    """Computed in the type that is asked for, and not cast to it afterwards."""
    typed = _in_type(x, dtype)
    typed = op.Unsqueeze(typed, whole(0)) if rank(x) == 0 else typed
    result = softmax(typed, axis=dim)
    return op.Squeeze(result, whole(0)) if rank(x) == 0 else result


def _log_of_softmax(x: ir.Value, dim: int, dtype: Any = None) -> Any:
    """In double step by step: of a NaN, ONNX Runtime's own there makes numbers."""
    is_double = x.dtype == DOUBLE if dtype is None or int(dtype) < 0 else int(dtype) == DOUBLE

    def steps(typed: Any, axis: int) -> Any:
        less = op.Sub(typed, op.ReduceMax(typed, whole(axis), keepdims=1))
        return op.Sub(less, op.Log(op.ReduceSum(op.Exp(less), whole(axis), keepdims=1)))

    return _softmax(steps if is_double else op.LogSoftmax, x, dim, dtype)


# ---- batch, group and instance normalisation; of groups by ONNX's LayerNormalization, a group as one row

# ONNX's own GroupNormalization takes the variance as the difference of two means. In ONNX Runtime that loses a hundred
# times as much as PyTorch where values lie close together, as in feature maps of a few pixels, and takes longer.
# InstanceNormalization is faster by a quarter, but loses up to 23 times as much where the mean is far from zero.
# All of them add up one by one, so that long rows lose digits: those known to be long are computed in double.

_LONG_ROW = 2000
"""Numbers of one row, of which a runtime's sum in float32 differs from PyTorch's by its rounding noise."""


def _group_norm(
    x: ir.Value, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5, _cudnn_enabled: bool = True
) -> Any:
    groups = op.Reshape(x, whole(0, num_groups, -1))
    return _scaled_and_shifted(_normalised_rows(groups, x, eps, num_groups), weight, bias, x)


def _instance_norm(
    x: ir.Value, weight: Any, bias: Any, mean: Any, variance: Any, use_input_stats: bool, momentum: float, eps: float,
    _cudnn_enabled: bool = False,
) -> Any:  # fmt: skip
    if not use_input_stats:
        return _batch_norm(x, weight, bias, mean, variance, False, momentum, eps)
    rows = _normalised_rows(op.Reshape(x, whole(0, 0, -1)), x, eps, static_size(x, 1))
    return _scaled_and_shifted(rows, weight, bias, x)


def _normalised_rows(rows: ir.Value, x: ir.Value, eps: float, many: int | None) -> Any:
    """Each row by its own mean and variance, in the shape of `x`; in float32, as PyTorch computes halves, too."""
    if x.dtype == DOUBLE or _are_long(x, many):  # an attribute is a float32, and so would be the epsilon
        spread = _normalised_along(op.Cast(rows, to=DOUBLE), [2], eps)
    else:
        ones = op.Expand(literal(1.0, FLOAT), op.Shape(rows, start=2, end=3))
        (spread,) = record("LayerNormalization", [op.Cast(rows, to=FLOAT), ones], {"axis": -1, "epsilon": eps}, 1)
    return op.Reshape(op.CastLike(spread, x), op.Shape(x))


def _are_long(x: ir.Value, rows: int | None) -> bool:
    """Whether each of so many rows of a sample is known to be long."""
    sizes = [static_size(x, axis) for axis in range(1, rank(x))]
    known = [size for size in sizes if size is not None]
    return rows is not None and known == sizes and math.prod(known) > _LONG_ROW * rows


def _normalised_along(x: ir.Value, axes: Sequence[int], eps: float) -> Any:
    """Normalised by its own mean and variance along some axes."""
    centred = op.Sub(x, _mean_along(x, axes))
    variance = _mean_along(op.Mul(centred, centred), axes)
    return op.Div(centred, op.Sqrt(op.Add(variance, number(eps, x))))


def _mean_along(x: Any, axes: Sequence[int]) -> Any:
    """Axis by axis, the last one first: a runtime adds up all numbers one by one, and of 100,000 loses five digits."""
    for axis in reversed(axes):
        x = op.ReduceMean(x, whole(axis), keepdims=True)
    return x


def _batch_norm(
    x: ir.Value, weight: Any, bias: Any, mean: Any, variance: Any, training: bool, momentum: float, eps: float,
    _cudnn_enabled: bool = False,
) -> Any:  # fmt: skip
    if training or mean is None:
        result = _normalised_along(x, [axis for axis in range(rank(x)) if axis != 1], eps)
        return _scaled_and_shifted(result, weight, bias, x)
    weight = op.Expand(number(1.0, mean), op.Shape(mean)) if weight is None else weight
    bias = op.Expand(number(0.0, mean), op.Shape(mean)) if bias is None else bias
    return op.BatchNormalization(x, weight, bias, mean, variance, epsilon=eps, momentum=1.0 - momentum)


def _scaled_and_shifted(result: Any, weight: Any, bias: Any, x: ir.Value) -> Any:
    if weight is not None:
        result = op.Mul(result, _for_each_channel(weight, x))
    return result if bias is None else op.Add(result, _for_each_channel(bias, x))


def _for_each_channel(value: ir.Value, x: ir.Value) -> Any:
    """A number for each channel, of which the other axes follow."""
    later = rank(x) - 2
    return op.Unsqueeze(value, whole(*range(1, 1 + later))) if later else value


# ---- means


def _mean(x: ir.Value, dim: Any = None, keepdim: bool = False, *, dtype: int = -1) -> Any:
    """Of nothing NaN, where ONNX Runtime has 0: what a mask or a loop leaves may be nothing."""
    axes = [from_front(axis, x) for axis in (range(rank(x)) if dim in (None, []) else for_each_axis(dim, 1))]
    if not any(_may_be_nothing(x, axis) for axis in axes):
        name = "core.aten_mean" if dim is None else "core.aten_mean_dim"
        return torchs_translation(name)(x, *([] if dim is None else [dim, keepdim]), dtype=dtype)
    typed = _in_type(x, dtype)
    many = op.ReduceProd(op.Gather(op.Shape(x), whole(*axes)), keepdims=0)
    return op.Div(op.ReduceSum(typed, whole(*axes), keepdims=int(keepdim)), op.CastLike(many, typed))


def _may_be_nothing(x: ir.Value, axis: int) -> bool:
    """Whether values decide the size: torch names such sizes by a u and a number."""
    assert x.shape is not None
    size = x.shape[axis]
    return size == 0 or (not isinstance(size, int) and re.search(r"\bu\d+\b", str(size.value)) is not None)


# ---- variances: torch adds them up in double, so that a mean close to zero keeps its digits


def _moments(x: ir.Value, dim: Any = None, correction: Any = None, keepdim: bool = False) -> tuple[Any, Any]:
    """The variance and the mean, in double."""
    wide, correction = op.Cast(x, to=DOUBLE), 1 if correction is None else correction
    axes = whole(*(for_each_axis(dim, 1) if dim is not None and dim != [] else range(rank(x))))
    many = op.Cast(op.ReduceProd(op.Gather(op.Shape(x), axes), keepdims=0), to=DOUBLE)
    mean = op.Div(op.ReduceSum(wide, axes, keepdims=1), many)  # of nothing, NaN
    centred = op.Sub(wide, mean)
    squares = op.ReduceSum(op.Mul(centred, centred), axes, keepdims=int(keepdim))
    free = op.Max(op.Sub(many, exact(correction)), exact(0))
    mean = mean if keepdim else op.Squeeze(mean, axes)
    # PyTorch moves the mean by each difference, and those of infinities are NaN
    return op.Div(squares, free), op.Where(op.IsNaN(squares), squares, mean)


def _variances(*, rooted: bool, with_mean: bool) -> dict[str, Callable[..., Any]]:
    def by_correction(x: ir.Value, dim: Any = None, correction: Any = None, keepdim: bool = False) -> Any:
        variance, mean = _moments(x, dim, correction, keepdim)
        spread = op.CastLike(op.Sqrt(variance) if rooted else variance, x)
        return (spread, op.CastLike(mean, x)) if with_mean else spread

    def over_all(x: ir.Value, unbiased: bool = True) -> Any:
        return by_correction(x, None, int(unbiased))

    def over_axes(x: ir.Value, dim: Any, unbiased: bool = True, keepdim: bool = False) -> Any:
        return by_correction(x, dim, int(unbiased), keepdim)

    name = f"aten::{'std' if rooted else 'var'}{'_mean' if with_mean else ''}"
    return {name: over_all, f"{name}.dim": over_axes, f"{name}.correction": by_correction}


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "aten::to.dtype": _in_type,
    "aten::to.device": _to_device,
    "aten::to.dtype_layout": _in_type,
    "aten::to.other": _like_other,
    "aten::type_as": _like_other,
    "aten::__and__.Tensor": partial(bits, op.And, op.BitwiseAnd),
    "aten::__and__.Scalar": partial(bits, op.And, op.BitwiseAnd),
    "aten::__or__.Tensor": partial(bits, op.Or, op.BitwiseOr),
    "aten::__or__.Scalar": partial(bits, op.Or, op.BitwiseOr),
    "aten::__xor__.Tensor": partial(bits, op.Xor, op.BitwiseXor),
    "aten::celu": _celu,
    "aten::reshape_as": _reshape_as,
    "aten::view_as": _reshape_as,
    "aten::conv_transpose1d": partial(_transposed_convolution, 1),
    "aten::conv_transpose2d.input": partial(_transposed_convolution, 2),
    "aten::conv_transpose3d.input": partial(_transposed_convolution, 3),
    "aten::softmax.int": partial(_softmax, op.Softmax),
    "aten::log_softmax.int": _log_of_softmax,
    "aten::mean": _mean,
    "aten::mean.dim": _mean,
    "aten::square": lambda tensor: op.Mul(tensor, tensor),
    "aten::batch_norm": _batch_norm,
    "aten::group_norm": _group_norm,
    "aten::instance_norm": _instance_norm,
    **_variances(rooted=False, with_mean=False),
    **_variances(rooted=True, with_mean=False),
    **_variances(rooted=False, with_mean=True),
    **_variances(rooted=True, with_mean=True),
}
