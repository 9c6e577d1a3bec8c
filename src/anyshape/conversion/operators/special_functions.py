"""Functions that ONNX has no operator for: lgamma, digamma, erfinv and smaller ones.

Those of the gamma family are computed in double, from series that hold to its last digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import onnx_ir as ir

from anyshape.conversion.operators.onnx_words import DOUBLE, FLOAT, exact, literal, number, op

# ---- the gamma family


def _polynomial(x: Any, coefficients: Sequence[float], like: Callable[[float], Any]) -> Any:
    """Coefficients from the highest power down."""
    total = like(coefficients[0])
    for coefficient in coefficients[1:]:
        total = op.Add(op.Mul(total, x), like(coefficient))
    return total


_LANCZOS = (
    0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
    12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
)  # fmt: skip


def _log_gamma_above_half(x: Any) -> Any:
    below = op.Sub(x, exact(1))
    series = exact(_LANCZOS[0])
    for index, coefficient in enumerate(_LANCZOS[1:], start=1):
        series = op.Add(series, op.Div(exact(coefficient), op.Add(below, exact(index))))
    t = op.Add(below, exact(7.5))
    power = op.Sub(op.Mul(op.Add(below, exact(0.5)), op.Log(t)), t)
    return op.Add(op.Add(power, op.Log(series)), exact(0.5 * math.log(2 * math.pi)))


def _by_reflection(x: ir.Value, above_half: Callable[[Any], Any]) -> tuple[Any, Any, Any]:
    """The argument in double, whether it lies below a half, and the function of it or of what mirrors it there."""
    wide = op.Cast(x, to=DOUBLE)
    low = op.Less(wide, exact(0.5))
    return wide, low, above_half(op.Where(low, op.Sub(exact(1), wide), wide))


def _log_gamma(x: ir.Value) -> Any:
    """By Lanczos' series; below a half by reflection, at whole numbers up to 0 infinite."""
    wide, low, plain = _by_reflection(x, _log_gamma_above_half)
    turn = op.Sub(wide, op.Floor(wide))
    sine = op.Abs(op.Sin(op.Mul(exact(math.pi), turn)))
    mirrored = op.Sub(op.Log(op.Div(exact(math.pi), sine)), plain)
    pole = op.And(low, op.Equal(turn, exact(0)))
    value = op.Where(pole, exact(math.inf), op.Where(low, mirrored, plain))
    infinite = op.IsInf(op.CastLike(wide, literal(0.0, FLOAT))) if x.dtype != DOUBLE else op.IsInf(wide)
    return op.CastLike(op.Where(infinite, exact(math.inf), value), x)


_STEPS_UP = 10
"""Both series below are exact to the last digit of double from here on."""


def _digamma_above_half(x: Any) -> Any:
    total = exact(0)
    for step in range(_STEPS_UP):
        total = op.Sub(total, op.Div(exact(1), op.Add(x, exact(step))))
    y = op.Add(x, exact(_STEPS_UP))
    inverse = op.Div(exact(1), op.Mul(y, y))
    series = _polynomial(inverse, (1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12, 0), exact)
    return op.Sub(op.Sub(op.Add(total, op.Log(y)), op.Div(exact(0.5), y)), series)


def _digamma(x: ir.Value) -> Any:
    wide, low, plain = _by_reflection(x, _digamma_above_half)
    angle = op.Mul(exact(math.pi), op.Sub(wide, op.Floor(wide)))
    mirrored = op.Sub(plain, op.Div(op.Mul(exact(math.pi), op.Cos(angle)), op.Sin(angle)))
    pole = op.And(low, op.Equal(wide, op.Floor(wide)))
    at_pole = op.Where(op.Equal(wide, exact(0)), exact(-math.inf), exact(math.nan))
    return op.CastLike(op.Where(pole, at_pole, op.Where(low, mirrored, plain)), x)


def _trigamma_above_half(x: Any) -> Any:
    total = exact(0)
    for step in range(_STEPS_UP):
        above = op.Add(x, exact(step))
        total = op.Add(total, op.Div(exact(1), op.Mul(above, above)))
    y = op.Add(x, exact(_STEPS_UP))
    inverse = op.Div(exact(1), op.Mul(y, y))
    series = _polynomial(inverse, (5 / 66, -1 / 30, 1 / 42, -1 / 30, 1 / 6, 1), exact)
    return op.Add(total, op.Add(op.Div(series, y), op.Mul(exact(0.5), inverse)))


def _polygamma(n: int, x: ir.Value) -> Any:
    if n == 0:
        return _digamma(x)
    if n != 1:
        raise NotImplementedError(f"polygamma({n}, x)")
    wide, low, plain = _by_reflection(x, _trigamma_above_half)
    sine = op.Div(exact(math.pi), op.Sin(op.Mul(exact(math.pi), op.Sub(wide, op.Floor(wide)))))
    return op.CastLike(op.Where(low, op.Sub(op.Mul(sine, sine), plain), plain), x)


# ---- others


def _inverse_erf(y: ir.Value) -> Any:
    """As torch computes it: rational approximations in the middle and in the tails, then two steps of Newton."""

    def like(value: float) -> Any:
        return number(value, y)

    one = like(1)
    size = op.Abs(y)
    z = op.Mul(y, y)
    central = op.Div(
        op.Mul(y, _polynomial(z, (-0.140543331, 0.914624893, -1.645349621, 0.886226899), like)),
        _polynomial(z, (0.012229801, -0.329097515, 1.442710462, -2.118377725, 1), like),
    )
    w = op.Sqrt(op.Neg(op.Log(op.Div(op.Sub(one, op.Min(size, one)), like(2)))))
    w = op.Min(w, like(8))  # an infinite one would make the quotient NaN
    tail = op.Div(
        _polynomial(w, (1.641345311, 3.429567803, -1.624906493, -1.970840454), like),
        _polynomial(w, (1.637067800, 3.543889200, 1), like),
    )
    x = op.Where(op.LessOrEqual(size, like(0.7)), central, op.Mul(op.Sign(y), tail))
    for _ in range(2):
        slope = op.Mul(like(2 / math.sqrt(math.pi)), op.Exp(op.Neg(op.Mul(x, x))))
        x = op.Sub(x, op.Div(op.Sub(op.Erf(x), y), slope))
    x = op.Where(op.Equal(size, one), op.Mul(op.Sign(y), like(math.inf)), x)
    return op.Where(op.Greater(size, one), like(math.nan), x)


def _normal_quantile(p: ir.Value) -> Any:
    spread = op.Sub(op.Mul(number(2, p), p), number(1, p))
    typed: Any = op.Identity(spread)
    typed.dtype = p.dtype
    return op.Mul(number(math.sqrt(2), p), _inverse_erf(typed))


def _with_sign_of(x: ir.Value, sign: Any) -> Any:
    """Zero has a sign, too: its reciprocal shows it."""
    if not isinstance(sign, ir.Value):
        return op.Neg(op.Abs(x)) if math.copysign(1, sign) < 0 else op.Abs(x)
    zero = number(0, sign)
    negative = op.Or(op.Less(sign, zero), op.Less(op.Reciprocal(sign), zero))
    return op.Where(negative, op.Neg(op.Abs(x)), op.Abs(x))


def _ignoring_nan(choose: Callable[..., Any], left: ir.Value, right: ir.Value) -> Any:
    if left.dtype is not None and left.dtype.is_integer():
        return choose(left, right)
    return op.Where(op.IsNaN(left), right, op.Where(op.IsNaN(right), left, choose(left, right)))


def _randomised_relu(
    x: ir.Value, noise: ir.Value, lower: float = 0.125, upper: float = 1 / 3, training: bool = False, *_generator: Any
) -> tuple[Any, Any]:
    """Outside training, the slope is the middle of both."""
    if training:
        raise NotImplementedError("rrelu in training")
    return op.LeakyRelu(x, alpha=(lower + upper) / 2), op.Identity(noise)


# ---- logarithms of sums of powers: the larger one is taken out, or the power would overflow


def _log_of_one_and(power: Any, like: ir.Value) -> Any:
    """Of a power from 0 to 1, with all its digits: what 1 + x rounds away is put back by the quotient."""
    total = op.Add(number(1, like), power)
    rounded = op.Sub(total, number(1, like))
    is_lost = op.Equal(rounded, number(0, like))
    quotient = op.Div(power, op.Where(is_lost, number(1, like), rounded))
    return op.Where(is_lost, power, op.Mul(op.Log(total), quotient))


def _log_sigmoid(x: ir.Value) -> Any:
    rest = _log_of_one_and(op.Exp(op.Neg(op.Abs(x))), x)
    return op.Sub(op.Min(x, number(0, x)), rest)


def _log_of_sum(left: ir.Value, right: ir.Value, *, base: float = math.e) -> Any:
    """Of both to a power of the base; equal ones may be infinite."""
    scale = number(math.log(base), left)
    power = op.Exp(op.Neg(op.Mul(op.Abs(op.Sub(left, right)), scale)))
    rest = op.Div(_log_of_one_and(power, left), scale)
    alike = op.Equal(left, right)
    return op.Add(op.Max(left, right), op.Where(alike, number(math.log(2, base), left), rest))


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "aten::log_sigmoid": _log_sigmoid,
    "aten::logaddexp": _log_of_sum,
    "aten::logaddexp2": partial(_log_of_sum, base=2.0),
    "aten::lgamma": _log_gamma,
    "aten::digamma": _digamma,
    "aten::polygamma": _polygamma,
    "aten::erfinv": _inverse_erf,
    "aten::special_ndtri": _normal_quantile,
    "aten::hypot": lambda left, right: op.Sqrt(op.Add(op.Mul(left, left), op.Mul(right, right))),
    "aten::copysign.Tensor": _with_sign_of,
    "aten::copysign.Scalar": _with_sign_of,
    "aten::fmax": partial(_ignoring_nan, op.Max),
    "aten::fmin": partial(_ignoring_nan, op.Min),
    "aten::rrelu_with_noise_functional": _randomised_relu,
}
