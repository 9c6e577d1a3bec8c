"""Arithmetic on sizes, exact like Python's: whole numbers as int64, others as double, with the literals as written.

torch translates `//` by a division that truncates, so `-(-n // k)` is wrong, and computes in float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir

from anyshape.conversion.operators.onnx_words import op

_DOUBLE, _FLOAT, _INT64 = ir.DataType.DOUBLE, ir.DataType.FLOAT, ir.DataType.INT64


def floordiv(left: Any, right: Any) -> Any:
    """Towards minus infinity: one less than the truncated quotient where a remainder has the other sign."""
    left, right = _whole(left), _whole(right)
    if _is_positive_literal(right) and _is_a_size(left):
        return op.Div(left, right)
    # ONNX's Mod of integers has the sign of the divisor, as Python's
    return op.Div(op.Sub(left, op.Mod(left, right)), right)


def _is_positive_literal(value: Any) -> bool:
    constant = ir.convenience.get_const_tensor(value) if isinstance(value, ir.Value) else None
    return constant is not None and bool((constant.numpy() > 0).all())


def _is_a_size(value: Any) -> bool:
    """Whether a number comes straight from a shape: it cannot be negative."""
    node = value.producer() if isinstance(value, ir.Value) else None
    if node is not None and node.op_type == "Squeeze":
        node = node.inputs[0].producer() if node.inputs[0] is not None else None
    return node is not None and node.op_type == "Shape"


def number(tree: Sequence[Any]) -> Any:
    """The translation of a whole chain of scalar functions: double inside, int64 or float32 at its end."""
    name, *_ = tree
    value = _evaluate(tree)
    if name in _WHOLE_RESULTS:
        return op.Cast(value, to=_INT64)
    return op.Cast(value, to=_FLOAT)


def _evaluate(tree: Any) -> Any:
    if not isinstance(tree, list | tuple):
        return _double(tree)
    name, *arguments = tree
    if name == "sum":
        (arguments,) = arguments
    values = [_evaluate(argument) for argument in arguments if argument is not None]
    return _FUNCTIONS[name](*values)


def _double(value: Any) -> Any:
    if isinstance(value, ir.Value):
        return op.Cast(value, to=_DOUBLE)
    return op.Constant(value=ir.tensor(float(value), dtype=_DOUBLE))


def _whole(value: Any) -> Any:
    return value if isinstance(value, ir.Value) else op.Constant(value=ir.tensor(int(value), dtype=_INT64))


def _trunc(value: Any) -> Any:
    return op.Where(op.Less(value, _double(0)), op.Ceil(value), op.Floor(value))


def _round(value: Any, digits: Any = None) -> Any:
    if digits is not None:
        raise NotImplementedError("round() of a size to decimal digits")
    return op.Round(value)  # half to even in both


def _remainder(left: Any, right: Any) -> Any:
    """With the sign of the divisor."""
    rest = op.Mod(left, right, fmod=1)
    zero = _double(0)
    differs = op.And(op.Not(op.Equal(rest, zero)), op.Xor(op.Less(rest, zero), op.Less(right, zero)))
    return op.Where(differs, op.Add(rest, right), rest)


def _floor_quotient(left: Any, right: Any) -> Any:
    """Python divides what the remainder leaves: `1.0 // 0.1` is 9, although 1.0 / 0.1 is 10."""
    return op.Round(op.Div(op.Sub(left, _remainder(left, right)), right))


def _log2(value: Any) -> Any:
    """Exact at powers of two, as Python's."""
    plain = op.Div(op.Log(value), _double(math.log(2)))
    whole = op.Round(plain)
    return op.Where(op.Equal(op.Pow(_double(2), whole), value), whole, plain)


def _sum(*values: Any) -> Any:
    total = values[0]
    for value in values[1:]:
        total = op.Add(total, value)
    return total


_WHOLE_RESULTS = {"trunc", "floor", "ceil", "round"}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": op.Add, "sub": op.Sub, "mul": op.Mul, "truediv": op.Div, "floordiv": _floor_quotient, "mod": _remainder,
    "pow": op.Pow, "neg": op.Neg, "abs": op.Abs, "max": op.Max, "min": op.Min, "sum": _sum, "float": lambda x: x,
    "round": _round, "ceil": op.Ceil, "floor": op.Floor, "trunc": _trunc, "sqrt": op.Sqrt, "log2": _log2,
    "cos": op.Cos, "cosh": op.Cosh, "sin": op.Sin, "sinh": op.Sinh, "tan": op.Tan, "tanh": op.Tanh,
    "asin": op.Asin, "acos": op.Acos, "atan": op.Atan,
}  # fmt: skip

TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "_operator::floordiv": floordiv,
    "anyshape.conversion.operators.numbers::exact_number": number,
}
