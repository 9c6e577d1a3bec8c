"""Operators between a tensor and a number, where the number is a size or was computed from sizes.

torch's translations write such a number down as a constant. With a literal they are asked as before.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import onnx_ir as ir

from anyshape.conversion.operators.onnx_words import op
from anyshape.conversion.operators.onnx_words_shapes import FLOAT, number

Function = Callable[..., Any]
_LIBRARY = "onnxscript.function_libs.torch_lib.ops"


def _of_torch(place: str) -> Function:
    module, _, name = place.partition(".")
    function: Function = getattr(importlib.import_module(f"{_LIBRARY}.{module}"), name)
    return function


def _where_sized(tensors: int, ours: Function, otherwise: str) -> Function:
    """Ours where a number behind so many tensors is a value of the graph; torch's own otherwise."""

    def translate(*args: Any, **kwargs: Any) -> Any:
        sized = any(isinstance(value, ir.Value) for value in (*args[tensors:], *kwargs.values()))
        return (ours if sized else _of_torch(otherwise))(*args, **kwargs)

    return translate


def _common(x: ir.Value, other: Any) -> tuple[Any, Any]:
    """Both in one type: that of the tensor, unless the number has a fraction and the tensor cannot have one."""
    whole = x.dtype is not None and x.dtype.is_integer()
    fractional = other.dtype is not None and not other.dtype.is_integer() if isinstance(other, ir.Value) else False
    if whole and fractional:
        return op.Cast(x, to=FLOAT), op.Cast(other, to=FLOAT)
    return x, number(other, x)


def _plain(operator: Function) -> Function:
    def translate(x: ir.Value, other: Any, alpha: Any = 1) -> Any:
        left, right = _common(x, other)
        return operator(left, right if isinstance(alpha, int) and alpha == 1 else op.Mul(right, number(alpha, x)))

    return translate


def _power(x: ir.Value, exponent: Any) -> Any:
    left, right = _common(x, exponent)
    return op.Pow(left, right)


def _remainder(x: ir.Value, other: Any) -> Any:
    """With the sign of the divisor."""
    left, right = _common(x, other)
    if x.dtype is not None and x.dtype.is_integer() and left is x:
        return op.Mod(left, right)
    rest = op.Mod(left, right, fmod=1)
    zero = op.CastLike(op.Constant(value=ir.tensor(0.0, dtype=FLOAT)), left)
    differs = op.And(op.Not(op.Equal(rest, zero)), op.Xor(op.Less(rest, zero), op.Less(right, zero)))
    return op.Where(differs, op.Add(rest, right), rest)


def _add_product(x: ir.Value, left: ir.Value, right: ir.Value, *, value: Any = 1) -> Any:
    return op.Add(x, op.Mul(number(value, x), op.Mul(left, right)))


def _add_quotient(x: ir.Value, left: ir.Value, right: ir.Value, *, value: Any = 1) -> Any:
    return op.Add(x, op.Mul(number(value, x), op.Div(left, right)))


def _leaky_relu(x: ir.Value, negative_slope: Any = 0.01) -> Any:
    return op.PRelu(x, number(negative_slope, x))


def _elu(x: ir.Value, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> Any:
    one, zero = number(1, x), number(0, x)
    below = op.Mul(number(alpha, x), op.Sub(op.Exp(op.Mul(op.Min(x, zero), number(input_scale, x))), one))
    return op.Mul(number(scale, x), op.Where(op.Greater(x, zero), x, below))


def _hardtanh(x: ir.Value, min_val: Any = -1, max_val: Any = 1) -> Any:
    return op.Clip(x, number(min_val, x), number(max_val, x))


def _softplus(x: ir.Value, beta: Any = 1, threshold: Any = 20) -> Any:
    steep = op.Mul(x, number(beta, x))
    return op.Where(op.Greater(steep, number(threshold, x)), x, op.Div(op.Softplus(steep), number(beta, x)))


def _add_matrix_product(x: ir.Value, left: ir.Value, right: ir.Value, *, beta: Any = 1, alpha: Any = 1) -> Any:
    return op.Add(op.Mul(number(beta, x), x), op.Mul(number(alpha, x), op.MatMul(left, right)))


TRANSLATIONS: dict[str, Function] = {
    "aten::add.Scalar": _where_sized(1, _plain(op.Add), "core.aten_add_scalar"),
    "aten::sub.Scalar": _where_sized(1, _plain(op.Sub), "core.aten_sub_scalar"),
    "aten::mul.Scalar": _where_sized(1, _plain(op.Mul), "core.aten_mul_scalar"),
    "aten::pow.Tensor_Scalar": _where_sized(1, _power, "core.aten_pow_tensor_scalar"),
    "aten::remainder.Scalar": _where_sized(1, _remainder, "core.aten_remainder_scalar"),
    "aten::addcmul": _where_sized(3, _add_product, "core.aten_addcmul"),
    "aten::addcdiv": _where_sized(3, _add_quotient, "core.aten_addcdiv"),
    "aten::addmm": _where_sized(3, _add_matrix_product, "core.aten_addmm"),
    "aten::leaky_relu": _where_sized(1, _leaky_relu, "nn.aten_leaky_relu"),
    "aten::elu": _where_sized(1, _elu, "nn.aten_elu"),
    "aten::hardtanh": _where_sized(1, _hardtanh, "nn.aten_hardtanh"),
    "aten::softplus": _where_sized(1, _softplus, "nn.aten_softplus"),
}
