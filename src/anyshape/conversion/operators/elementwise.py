"""Elementwise functions as PyTorch computes them at every value: infinities, signed zeros, negative divisors, digits.

Torch's translations of these operators are right at ordinary values, and off at others: a clamp to one side that makes
the largest finite number of an infinity, a quotient of whole numbers that goes through float32, an angle that is NaN
where both sides are zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import onnx_ir as ir

from anyshape.conversion.operators.numbers import floordiv, with_sign_of_divisor
from anyshape.conversion.operators.onnx_words import (
    BOOL,
    DOUBLE,
    FLOAT,
    INT64,
    counted,
    exact,
    from_front,
    literal,
    moved,
    number,
    op,
    rank,
    scanned,
    torchs_translation,
    whole,
)  # fmt: skip

Function = Callable[..., Any]


def is_float(value: Any) -> bool:
    return isinstance(value, ir.Value) and value.dtype is not None and value.dtype.is_floating_point()


def in_floats(value: ir.Value) -> Any:
    """Whole numbers and truths as PyTorch promotes them."""
    if is_float(value) or value.dtype is None:
        return value
    typed: Any = op.Cast(value, to=FLOAT)
    typed.dtype, typed.shape = FLOAT, value.shape
    return typed


def beside(left: Any, right: Any) -> tuple[Any, Any]:
    """Two operands, one of which may be a number, in the type of the other."""
    if isinstance(left, ir.Value):
        return left, right if isinstance(right, ir.Value) else number(right, left)
    typed = number(left, right)
    typed.dtype = right.dtype
    return typed, right


# ---- bounds: ONNX Runtime's Clip takes a bound that is not given for the largest finite number


def _clamp(x: ir.Value, min: Any = None, max: Any = None) -> Any:  # noqa: A002  torch's names
    if not is_float(x) or (min is None) == (max is None):
        return torchs_translation("core.aten_clamp")(x, min, max)
    return op.Min(x, number(max, x)) if min is None else op.Max(x, number(min, x))


def _not_below(x: ir.Value, least: ir.Value) -> Any:
    return op.Max(x, op.CastLike(least, x))


def _not_above(x: ir.Value, most: ir.Value) -> Any:
    return op.Min(x, op.CastLike(most, x))


def _log_of_odds(x: ir.Value, eps: float | None = None) -> Any:
    """NaN stays NaN within bounds, too."""
    typed, one = in_floats(x), literal(1.0, x.dtype if is_float(x) else FLOAT)
    if eps is not None:
        typed = op.Min(op.Max(typed, op.CastLike(exact(eps), typed)), op.CastLike(exact(1 - eps), typed))
    return op.Log(op.Div(typed, op.Sub(one, typed)))


def _step(x: ir.Value, at_zero: ir.Value) -> Any:
    """NaN is not above zero."""
    zero = number(0, x)
    return op.Where(op.Equal(x, zero), at_zero, op.CastLike(op.Greater(x, zero), x))


# ---- division and what it leaves


def is_negative(x: Any, zero: Any) -> Any:
    """Zero has a sign, too: its reciprocal shows it."""
    return op.Or(op.Less(x, zero), op.Less(op.Reciprocal(x), zero))


def _floor_of_quotient(left: Any, right: Any) -> Any:
    """From what the remainder leaves, as PyTorch: `1.0 // 0.1` is 9; by zero as a division, and never -0.0 for -1."""
    left, right = beside(left, right)
    if not is_float(left):
        return floordiv(left, right) if rank(left) == 0 else _whole_floor_of_quotient(left, right)
    zero, one = number(0, left), number(1, left)
    rest = op.Mod(left, right, fmod=1)
    quotient = op.Div(op.Sub(left, rest), right)
    differs = op.And(op.Not(op.Equal(rest, zero)), op.Xor(op.Less(right, zero), op.Less(rest, zero)))
    rounded = op.Round(op.Where(differs, op.Sub(quotient, one), quotient))
    return op.Where(op.Equal(right, zero), op.Div(left, right), rounded)


def _whole_floor_of_quotient(left: Any, right: Any) -> Any:
    """Less by one where the remainder is another one: less the remainder, the smallest number would wrap around."""
    quotient = _whole_quotient(left, right)
    is_less = op.Not(op.Equal(op.Sub(left, op.Mul(quotient, right)), whole_remainder(left, right)))
    return op.Sub(quotient, op.CastLike(is_less, quotient))


def _quotient(left: Any, right: Any, *, rounding_mode: str | None = None) -> Any:
    """Whole numbers are divided as such: in float32 the last digits of large ones are lost."""
    left, right = beside(left, right)
    if rounding_mode == "floor":
        return _floor_of_quotient(left, right)
    if rounding_mode == "trunc" and not is_float(left):
        return _whole_quotient(left, right)
    return torchs_translation("core.aten_div_mode")(left, right, rounding_mode)


def _remainder(left: Any, right: Any) -> Any:
    """With the sign of the divisor; from the quotient it would be off by a multiple where that is large."""
    left, right = beside(left, right)
    if not is_float(left):
        return whole_remainder(left, right)
    return with_sign_of_divisor(op.Mod(left, right, fmod=1), right, number(0, left))


def _rest_of_division(left: Any, right: Any) -> Any:
    """With the sign of the dividend; ONNX Runtime takes that of whole numbers in double."""
    left, right = beside(left, right)
    if is_float(left):
        return op.Mod(left, right, fmod=1)
    return op.Sub(left, op.Mul(_whole_quotient(left, right), right))


def _whole_quotient(left: Any, right: Any) -> Any:
    """By -1 the sign is turned: the smallest number divided by it ends the process of ONNX Runtime."""
    if (turned := _is_minus_one(right, beside=left)) is None:
        return op.Div(left, right)
    return op.Where(turned, op.Mul(left, right), op.Div(left, op.Where(turned, number(1, left), right)))


def whole_remainder(left: Any, right: Any) -> Any:
    """By -1 nothing is left, as by 1."""
    turned = _is_minus_one(right, beside=left)
    return op.Mod(left, right if turned is None else op.Where(turned, number(1, left), right))


def _is_minus_one(value: Any, *, beside: Any) -> Any:
    """None where it never is, and of small types, which are divided as larger ones."""
    constant, large = ir.convenience.get_const_tensor(value), {ir.DataType.INT32, INT64}
    if large.isdisjoint((value.dtype, beside.dtype)) or (constant is not None and not (constant.numpy() == -1).any()):
        return None
    return op.Equal(value, number(-1, beside))


# ---- angles


def angle_of(y: Any, x: Any) -> Any:
    """In the right half of the plane first; then mirrored by the signs, those of zeros among them."""
    y, x = in_floats(y), in_floats(x)
    zero, one = number(0, x), number(1, x)
    far, wide = op.Abs(y), op.Abs(x)
    # of two zeros the angle is zero, of two infinities an eighth of a turn
    same = op.And(op.Equal(far, wide), op.Or(op.Equal(far, zero), op.IsInf(far)))
    ratio = op.Where(same, op.Min(far, one), op.Div(far, wide))
    right = op.Atan(ratio)
    turned = op.Where(is_negative(x, zero), op.Sub(number(math.pi, x), right), right)
    return op.Where(is_negative(y, zero), op.Neg(turned), turned)


def _longest_side(left: ir.Value, right: ir.Value) -> Any:
    """The larger one is taken out, or its square would overflow, and that of a tiny one would be zero."""
    left, right = op.Abs(left), op.Abs(right)
    most, least = op.Max(left, right), op.Min(left, right)
    one = number(1, left)
    ratio = op.Div(least, op.Where(op.Equal(most, number(0, left)), one, most))
    side = op.Mul(most, op.Sqrt(op.Add(one, op.Mul(ratio, ratio))))
    return op.Where(op.Or(op.IsInf(left), op.IsInf(right)), number(math.inf, left), side)


def _sign(x: ir.Value) -> Any:
    """0 of NaN."""
    if not is_float(x):
        return torchs_translation("core.aten_sign")(x)
    zero = number(0, x)
    return op.Sub(op.CastLike(op.Greater(x, zero), x), op.CastLike(op.Less(x, zero), x))


def _opposite(x: ir.Value) -> Any:
    """Of types without a sign, or of sixteen bits, ONNX Runtime turns none."""
    if x.dtype is None or not x.dtype.is_integer() or x.dtype in (ir.DataType.INT32, INT64):
        return op.Neg(x)
    return op.Cast(op.Neg(op.Cast(x, to=INT64)), to=x.dtype)


def _is_signed(x: ir.Value) -> Any:
    if x.dtype == BOOL:
        return op.And(x, op.Not(x))
    return is_negative(x, number(0, x)) if is_float(x) else op.Less(x, number(0, x))


def _angle(x: ir.Value) -> Any:
    typed = in_floats(x)
    zero = op.CastLike(literal(0.0, FLOAT), typed)
    half_turn = op.Where(op.Less(typed, zero), op.CastLike(exact(math.pi), typed), zero)
    return op.Where(op.IsNaN(typed), typed, half_turn)


def _of_floats(function: Function, otherwise: Function, x: ir.Value) -> Any:
    """ONNX's operator for floats; whole numbers and truths have an answer of their own."""
    return function(x) if is_float(x) else otherwise(x)


def _as_far(x: ir.Value) -> Any:
    """In a type of which ONNX Runtime tells infinities."""
    return x if x.dtype in (FLOAT, DOUBLE) else op.Cast(x, to=FLOAT)


def _false(x: ir.Value) -> Any:
    return op.Expand(literal(False, BOOL), op.Shape(x))


def _true(x: ir.Value) -> Any:
    return op.Expand(literal(True, BOOL), op.Shape(x))


# ---- digits that a sum with 1 would round away


def log_of_one_and(x: Any, like: ir.Value) -> Any:
    """What 1 + x rounds away is put back by the quotient."""
    one, zero = number(1, like), number(0, like)
    total = op.Add(one, x)
    rounded = op.Sub(total, one)
    is_exact = op.Or(op.Equal(rounded, zero), op.IsInf(total))
    quotient = op.Div(x, op.Where(is_exact, one, rounded))
    return op.Where(op.Equal(rounded, zero), x, op.Mul(op.Log(total), op.Where(is_exact, one, quotient)))


def _power_less_one(x: ir.Value) -> Any:
    one = number(1, x)
    power = op.Exp(x)
    plain, log = op.Sub(power, one), op.Log(power)
    # near 0 alone: far out a power is infinite, or zero
    is_near = op.And(op.Less(op.Abs(x), one), op.Not(op.Equal(plain, number(0, x))))
    scaled = op.Mul(plain, op.Div(x, op.Where(is_near, log, one)))
    return op.Where(is_near, scaled, op.Where(op.Equal(plain, number(0, x)), x, plain))


# ---- whole numbers: divisors


_STEPS_OF_EUCLID = 91
"""Two neighbours of Fibonacci's take longest: those below 2**63."""


def _common_divisor(left: ir.Value, right: ir.Value) -> Any:
    zero, one = literal(0), literal(1)
    shape = op.Shape(op.Add(left, right))
    begin = [op.Expand(op.Abs(op.Cast(value, to=INT64)), shape) for value in (left, right)]

    def step(larger: Any, smaller: Any, _turn: Any) -> tuple[Any, Any]:
        is_done = op.Equal(smaller, zero)
        rest = op.Mod(larger, op.Where(is_done, one, smaller))
        return op.Where(is_done, larger, smaller), op.Where(is_done, smaller, rest)

    found, _ = scanned(begin, [counted(_STEPS_OF_EUCLID)], [INT64] * 3, step, last=True)
    return op.Abs(op.CastLike(found, left))


def _common_multiple(left: ir.Value, right: ir.Value) -> Any:
    divisor, *both = (op.Cast(one, to=INT64) for one in (_common_divisor(left, right), left, right))
    share = op.Div(both[0], op.Where(op.Equal(divisor, literal(0)), literal(1), divisor))
    return op.Abs(op.CastLike(op.Mul(share, both[1]), left))


# ---- the parts of a float: in double every float32 has a full mantissa


def _mantissa_and_power(x: Any) -> tuple[Any, Any]:
    """A mantissa from a half to one and the exponent, in double; of what has none, itself and 0."""
    size = op.Abs(x)
    none = op.Or(op.Equal(size, exact(0)), op.Or(op.IsInf(size), op.IsNaN(size)))
    usual = op.Where(none, exact(1), size)
    power = op.Floor(op.Div(op.Log(usual), exact(math.log(2))))
    # the logarithm may be off by its last digit
    power = op.Where(
        op.GreaterOrEqual(usual, op.Pow(exact(2), op.Add(power, exact(1)))), op.Add(power, exact(1)), power
    )
    power = op.Where(op.Less(usual, op.Pow(exact(2), power)), power, op.Add(power, exact(1)))
    power = op.Where(none, exact(0), power)
    return op.Div(x, op.Pow(exact(2), power)), power


def _mantissa_and_exponent(x: ir.Value) -> tuple[Any, Any]:
    mantissa, exponent = _mantissa_and_power(op.Cast(x, to=DOUBLE))
    return op.CastLike(mantissa, x), op.Cast(exponent, to=ir.DataType.INT32)


_DIGITS, _SMALLEST = 24, -149
"""Of float32: bits of its mantissa, and the exponent of its smallest number."""


def _neighbour(x: ir.Value, towards: ir.Value) -> Any:
    """Of float32: one step of its last digit, which is half as long below a power of two."""
    if x.dtype != FLOAT:
        raise NotImplementedError(f"nextafter of {x.dtype}")
    wide, goal = op.Cast(x, to=DOUBLE), op.Cast(towards, to=DOUBLE)
    zero, one = exact(0), exact(1)
    finite = op.Where(op.IsInf(wide), exact(2.0**128), op.Abs(wide))
    mantissa, exponent = _mantissa_and_power(finite)
    direction = op.Where(op.Greater(goal, wide), one, exact(-1))
    inwards = op.Less(op.Mul(wide, direction), zero)
    half = op.And(inwards, op.Equal(mantissa, exact(0.5)))
    power = op.Sub(exponent, op.Where(half, exact(_DIGITS + 1), exact(_DIGITS)))
    power = op.Where(op.Equal(finite, zero), exact(_SMALLEST), op.Max(power, exact(_SMALLEST)))
    start = op.Where(op.IsInf(wide), op.Mul(op.Sign(wide), finite), wide)
    moved = op.Add(start, op.Mul(direction, op.Pow(exact(2), power)))
    result = op.Where(op.Or(op.IsNaN(wide), op.IsNaN(goal)), exact(math.nan), moved)
    result = op.Where(op.Equal(wide, goal), goal, result)
    return op.CastLike(result, x)


# ---- products of whole numbers: PyTorch takes them in int64


def _product(x: ir.Value, dim: int, keepdim: bool = False, *, dtype: int | None = None) -> Any:
    wanted = ir.DataType(dtype) if dtype not in (None, -1) else None
    if wanted is None and not is_float(x):
        wanted = INT64
    typed = x if wanted in (None, x.dtype) else op.Cast(x, to=wanted)
    if rank(x) == 0:
        return op.Identity(typed)
    if wanted in (INT64, ir.DataType.INT32):
        return _wrapped_product(typed, wanted, from_front(dim, x), rank(x), keepdim=keepdim)
    return torchs_translation("core.aten_prod_dim_int")(typed, dim, keepdim)


def _wrapped_product(x: Any, kind: Any, axis: int, axes: int, *, keepdim: bool) -> Any:
    """Step by step: ONNX Runtime multiplies whole numbers as floats, and ends at the largest."""
    front = moved(x, axis, 0, axes)
    ones = op.Expand(literal(1, kind), op.Concat(whole(1), op.Shape(front, start=1), axis=0))
    begin = op.Squeeze(ones, whole(0))
    # one more step: a loop of none has no result
    steps = op.Concat(ones, front, axis=0)
    (result,) = scanned([begin], [steps], [kind, kind], lambda so_far, now: [op.Mul(so_far, now)], last=True)
    return op.Unsqueeze(result, whole(axis)) if keepdim else result


def _product_of_all(x: ir.Value, *, dtype: int | None = None) -> Any:
    flat: Any = op.Reshape(x, whole(-1))
    flat.dtype, flat.shape = x.dtype, ir.Shape([None])
    return _product(flat, 0, dtype=dtype)


# ---- powers of whole numbers: ONNX Runtime takes them in double, where the last digits of large ones are lost


_BITS = 63


def _is_whole(value: Any) -> bool:
    return value.dtype.is_integer() if isinstance(value, ir.Value) and value.dtype is not None else type(value) is int


def _power(base: Any, exponent: Any) -> Any:
    if not (_is_whole(base) and _is_whole(exponent)):
        both = isinstance(base, ir.Value)
        return torchs_translation("core.aten_pow" if both else "core.aten_pow_scalar")(base, exponent)
    base, exponent = beside(base, exponent)
    return op.CastLike(_whole_power(*(op.Cast(value, to=INT64) for value in (base, exponent))), exponent)


def _whole_power(base: Any, exponent: Any) -> Any:
    """By squaring, a bit of the exponent at a time; of negative ones, what is left of a fraction."""
    zero, one, two = literal(0), literal(1), literal(2)
    shape = op.Shape(op.Add(base, exponent))
    begin = [op.Expand(value, shape) for value in (one, base, op.Abs(exponent))]

    def step(result: Any, squared: Any, rest: Any, _turn: Any) -> tuple[Any, Any, Any]:
        odd = op.Equal(op.Mod(rest, two), one)
        return op.Where(odd, op.Mul(result, squared), result), op.Mul(squared, squared), op.Div(rest, two)

    found, _, _ = scanned(begin, [counted(_BITS)], [INT64] * 4, step, last=True)
    is_unit = op.Equal(op.Abs(base), one)
    return op.Where(op.And(op.Less(exponent, zero), op.Not(is_unit)), zero, found)


def power_by_products(base: Any, exponent: int, times: Function) -> Any:
    """By squaring; the exponent is at least 1."""
    result, squared = None, base
    while exponent:
        if exponent % 2:
            result = squared if result is None else times(result, squared)
        exponent //= 2
        squared = times(squared, squared) if exponent else squared
    return op.Identity(result)


def _shifted_bits(way: str, x: ir.Value, by: int | ir.Value) -> Any:
    """ONNX Runtime shifts no numbers of sixteen bits."""
    shift, short, wide = torchs_translation(f"core.aten_bitwise_{way}_shift"), ir.DataType.INT16, ir.DataType.INT32
    by = by if isinstance(by, ir.Value) else number(by, x)
    if x.dtype is not None and not x.dtype.is_signed():
        return op.BitShift(x, by, direction=way.upper())
    if x.dtype != short:
        return shift(x, by)
    widened: Any = [op.Cast(one, to=wide) for one in (x, by)]
    for one in widened:
        one.dtype = wide
    return op.Cast(shift(*widened), to=short)


TRANSLATIONS: dict[str, Function] = {
    "aten::clamp": _clamp,
    "aten::clamp_min": _clamp,
    "aten::clamp_max": lambda x, max: _clamp(x, None, max),  # noqa: A006
    "aten::clamp_min.Tensor": _not_below,
    "aten::clamp_max.Tensor": _not_above,
    "aten::neg": _opposite,
    "aten::heaviside": _step,
    "aten::logit": _log_of_odds,
    "aten::special_logit": _log_of_odds,
    "aten::sign": _sign,
    "aten::signbit": _is_signed,
    "aten::angle": _angle,
    "aten::isnan": partial(_of_floats, op.IsNaN, _false),
    "aten::isinf": partial(_of_floats, lambda x: op.IsInf(_as_far(x)), _false),
    "aten::isfinite": partial(_of_floats, lambda x: op.Not(op.Or(op.IsInf(_as_far(x)), op.IsNaN(x))), _true),
    "aten::ceil": partial(_of_floats, op.Ceil, op.Identity),
    "aten::floor": partial(_of_floats, op.Floor, op.Identity),
    "aten::round": partial(_of_floats, op.Round, op.Identity),
    "aten::trunc": partial(_of_floats, lambda x: op.Mul(op.Floor(op.Abs(x)), op.Sign(x)), op.Identity),
    "aten::hypot": _longest_side,
    "aten::log1p": lambda x: log_of_one_and(x, x),
    "aten::expm1": _power_less_one,
    "aten::special_expm1": _power_less_one,
    "aten::gcd": _common_divisor,
    "aten::lcm": _common_multiple,
    "aten::frexp.Tensor": _mantissa_and_exponent,
    "aten::nextafter": _neighbour,
    "aten::floor_divide": _floor_of_quotient,
    "aten::floor_divide.Scalar": _floor_of_quotient,
    "aten::div.Tensor_mode": _quotient,
    "aten::div.Scalar_mode": _quotient,
    "aten::remainder.Tensor": _remainder,
    "aten::remainder.Scalar_Tensor": _remainder,
    "aten::fmod.Tensor": _rest_of_division,
    "aten::fmod.Scalar": _rest_of_division,
    "aten::atan2": angle_of,
    "aten::prod.dim_int": _product,
    "aten::prod": _product_of_all,
    "aten::pow.Tensor_Tensor": _power,
    "aten::pow.Scalar": _power,
    "aten::relu": lambda x: op.Relu(x) if is_float(x) else op.Max(x, number(0, x)),
    **{
        f"aten::{name}.{kind}": partial(_shifted_bits, way)
        for way in ("left", "right")
        for name, others in ((f"bitwise_{way}_shift", "Tensor_Scalar"), (f"__{way[0]}shift__", "Scalar"))
        for kind in ("Tensor", others)
    },
}
