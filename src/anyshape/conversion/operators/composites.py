"""Operators that torch makes of others, and for which it would run the whole program again to take them apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir

from anyshape.conversion.operators.onnx_words import op
from anyshape.conversion.operators.onnx_words_shapes import BOOL, number, rank, whole


def _cast(tensor: Any, dtype: Any) -> Any:
    if dtype is None or int(dtype) < 0 or int(dtype) == int(tensor.dtype):
        return op.Identity(tensor)
    return op.Cast(tensor, to=int(dtype))


def to_dtype(tensor: Any, dtype: Any = None, **_layout: Any) -> Any:
    return _cast(tensor, dtype)


def to_device(tensor: Any, _device: Any, dtype: Any = None, **_layout: Any) -> Any:
    return _cast(tensor, dtype)


def like_other(tensor: Any, other: Any, **_layout: Any) -> Any:
    return _cast(tensor, other.dtype)


def _bits(on_truths: Callable[..., Any], on_numbers: Callable[..., Any]) -> Callable[..., Any]:
    def translate(left: Any, right: Any) -> Any:
        right = right if isinstance(right, ir.Value) else number(right, left)
        return (on_truths if left.dtype == BOOL else on_numbers)(left, right)

    return translate


def reshape_as(tensor: Any, other: Any) -> Any:
    return op.Reshape(tensor, op.Shape(other), allowzero=1)


def _transposed_convolution(axes: int) -> Callable[..., Any]:
    def translate(
        tensor: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
        groups: int = 1, dilation: Any = 1,
    ) -> Any:  # fmt: skip
        stride, padding, output_padding, dilation = (
            _each(value, axes) for value in (stride, padding, output_padding, dilation)
        )
        is_single = rank(tensor) == axes + 1
        result = op.ConvTranspose(
            op.Unsqueeze(tensor, whole(0)) if is_single else tensor, weight, bias, strides=stride,
            pads=[*padding, *padding], dilations=dilation, output_padding=output_padding, group=groups,
        )  # fmt: skip
        return op.Squeeze(result, whole(0)) if is_single else result

    return translate


def _each(value: Any, axes: int) -> list[int]:
    """One number for each axis."""
    values = [value] if isinstance(value, int) else list(value)
    return values * axes if len(values) == 1 else values


def square(tensor: Any) -> Any:
    return op.Mul(tensor, tensor)


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "aten::to.dtype": to_dtype,
    "aten::to.device": to_device,
    "aten::to.dtype_layout": to_dtype,
    "aten::to.other": like_other,
    "aten::type_as": like_other,
    "aten::__and__.Tensor": _bits(op.And, op.BitwiseAnd),
    "aten::__and__.Scalar": _bits(op.And, op.BitwiseAnd),
    "aten::__or__.Tensor": _bits(op.Or, op.BitwiseOr),
    "aten::__or__.Scalar": _bits(op.Or, op.BitwiseOr),
    "aten::__xor__.Tensor": _bits(op.Xor, op.BitwiseXor),
    "aten::reshape_as": reshape_as,
    "aten::view_as": reshape_as,
    "aten::conv_transpose1d": _transposed_convolution(1),
    "aten::conv_transpose2d.input": _transposed_convolution(2),
    "aten::conv_transpose3d.input": _transposed_convolution(3),
    "aten::square": square,
}
