"""Functions that ONNX has no operator for: lgamma, digamma, erfinv and smaller ones.

Those of the gamma family are computed in double, from series that hold to its last digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import onnx_ir as ir

from anyshape.conversion.operators.elementwise import in_floats, is_negative, log_of_one_and
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


def _beside_whole(x: Any) -> Any:
    """What is left of the nearest whole number, with all digits of a number close to it."""
    return op.Sub(x, op.Round(x))


def _cosine(angle: Any) -> Any:
    return op.Sin(op.Sub(exact(math.pi / 2), angle))  # older runtimes have no Cos in double


def _log_gamma(x: ir.Value) -> Any:
    """By Lanczos' series; below a half by reflection, at whole numbers up to 0 infinite, at 1 and 2 exactly 0."""
    x = in_floats(x)
    wide, low, plain = _by_reflection(x, _log_gamma_above_half)
    turn = _beside_whole(wide)
    sine = op.Abs(op.Sin(op.Mul(exact(math.pi), turn)))
    mirrored = op.Sub(op.Log(op.Div(exact(math.pi), sine)), plain)
    pole = op.And(low, op.Equal(turn, exact(0)))
    value = op.Where(pole, exact(math.inf), op.Where(low, mirrored, plain))
    value = op.Where(op.Or(op.Equal(wide, exact(1)), op.Equal(wide, exact(2))), exact(0), value)
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
    x = in_floats(x)
    wide, low, plain = _by_reflection(x, _digamma_above_half)
    angle = op.Mul(exact(math.pi), _beside_whole(wide))
    mirrored = op.Sub(plain, op.Div(op.Mul(exact(math.pi), _cosine(angle)), op.Sin(angle)))
    pole = op.And(low, op.Equal(wide, op.Floor(wide)))
    at_pole = op.Where(op.Equal(wide, exact(0)), op.Neg(op.Reciprocal(wide)), exact(math.nan))
    return op.CastLike(op.Where(pole, at_pole, op.Where(low, mirrored, plain)), x)


_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)
"""Those of even order, from the second."""


def _polygamma_above_half(n: int, x: Any) -> Any:
    """By its sum over the first steps, and the series of Euler and Maclaurin for the rest; the sign is left out."""
    total = exact(0)
    for step in range(_STEPS_UP):
        total = op.Add(total, op.Div(exact(math.factorial(n)), op.Pow(op.Add(x, exact(step)), exact(n + 1))))
    y = op.Add(x, exact(_STEPS_UP))
    inverse = op.Div(exact(1), op.Mul(y, y))
    weights = [b * math.factorial(2 * k + n - 1) / math.factorial(2 * k) for k, b in enumerate(_BERNOULLI, start=1)]
    series = _polynomial(inverse, (*reversed(weights), math.factorial(n - 1)), exact)
    halves = op.Div(exact(math.factorial(n) / 2), op.Pow(y, exact(n + 1)))
    return op.Add(total, op.Add(op.Div(series, op.Pow(y, exact(n))), halves))


def _derivative_of_cotangent(n: int) -> list[float]:
    """Of cot(pi x), as a polynomial in it, from the highest power down."""
    lowest_first = [0.0, 1.0]
    for _ in range(n):
        slope = [power * c for power, c in enumerate(lowest_first)][1:]
        lowest_first = [-math.pi * (a + b) for a, b in zip([*slope, 0, 0], [0, 0, *slope], strict=True)]
    return lowest_first[::-1]


def _polygamma(n: int, x: ir.Value) -> Any:
    """Below a half by reflection. At whole numbers up to 0 PyTorch has an infinity, or for n = 1 what the sine of a
    rounded pi leaves.
    """
    x = in_floats(x)
    if n == 0:
        return _digamma(x)
    wide, low, plain = _by_reflection(x, partial(_polygamma_above_half, n))
    sign = 1 if n % 2 else -1
    turn = op.Mul(exact(math.pi), _beside_whole(wide))
    cotangent = op.Div(_cosine(turn), op.Sin(turn))
    slope = op.Mul(exact(math.pi), _polynomial(cotangent, _derivative_of_cotangent(n), exact))
    mirrored = op.Sub(op.Neg(plain), slope)
    if n == 1:
        sine = op.Cast(op.Sin(op.Mul(number(math.pi, x), x)), to=DOUBLE)
        at_pole = op.Sub(op.Div(exact(math.pi**2), op.Mul(sine, sine)), plain)
    else:
        at_pole = exact(sign * math.inf)
        plain = op.Add(plain, op.Mul(wide, exact(0)))  # of infinity PyTorch has NaN
    pole = op.And(low, op.Equal(wide, op.Floor(wide)))
    value = op.Where(low, mirrored, op.Mul(exact(sign), plain))
    return op.CastLike(op.Where(pole, at_pole, value), x)


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


_CENTRE = (
    (
        -39.69683028665376,
        220.9460984245205,
        -275.9285104469687,
        138.3577518672690,
        -30.66479806614716,
        2.506628277459239,
    ),
    (-54.47609879822406, 161.5858368580409, -155.6989798598866, 66.80131188771972, -13.28068155288572, 1),
)
_TAIL = (
    (
        -0.007784894002430293,
        -0.3223964580411365,
        -2.400758277161838,
        -2.549732539343734,
        4.374664141464968,
        2.938163982698783,
    ),
    (0.007784695709041462, 0.3224671290700398, 2.445134137142996, 3.754408661996142, 1),
)
_TAIL_BELOW = 0.02425
"""Acklam's quotients of polynomials, right to nine digits: between the tails in the square, in them in a logarithm."""


def _normal_quantile(p: ir.Value) -> Any:
    p = in_floats(p)
    wide = op.Cast(p, to=DOUBLE)
    beside = op.Sub(wide, exact(0.5))
    square = op.Mul(beside, beside)
    above, below = (_polynomial(square, factors, exact) for factors in _CENTRE)
    middle = op.Div(op.Mul(beside, above), below)
    tail = op.Min(wide, op.Sub(exact(1), wide))
    depth = op.Sqrt(op.Mul(exact(-2), op.Log(tail)))
    above, below = (_polynomial(op.Min(depth, exact(100)), factors, exact) for factors in _TAIL)
    far = op.Mul(op.Neg(op.Sign(beside)), op.Div(above, below))
    far = op.Where(op.Equal(tail, exact(0)), op.Mul(op.Sign(beside), exact(math.inf)), far)
    value = op.Where(op.Less(tail, exact(_TAIL_BELOW)), far, middle)
    return op.CastLike(op.Where(op.Less(tail, exact(0)), exact(math.nan), value), p)


_ERFC = (
    0.17087277, -0.82215223, 1.48851587, -1.13520398, 0.27886807, -0.18628806, 0.09678418, 0.37409196, 1.00002368,
    -1.26551223,
)  # fmt: skip
"""Chebyshev's fit of the logarithm, right to a float32's digits everywhere."""


def _scaled_beyond(x: Any) -> Any:
    """erfc(x) exp(x**2) of what is not negative, in double: no digits are lost in the tail, as in 1 - erf(x)."""
    near = op.Div(exact(1), op.Add(exact(1), op.Mul(exact(0.5), x)))
    return op.Mul(near, op.Exp(_polynomial(near, _ERFC, exact)))


def _power_of_square(x: Any, sign: int) -> Any:
    return op.Exp(op.Mul(exact(sign), op.Mul(x, x)))


def _complement_in_double(x: Any) -> Any:
    """What erfc gives, in double."""
    far = op.Mul(_scaled_beyond(op.Abs(x)), _power_of_square(x, -1))
    return op.Where(op.Less(x, exact(0)), op.Sub(exact(2), far), far)


def _complement_of_erf(x: ir.Value) -> Any:
    x = in_floats(x)
    return op.CastLike(_complement_in_double(op.Cast(x, to=DOUBLE)), x)


def _scaled_complement_of_erf(x: ir.Value) -> Any:
    x = in_floats(x)
    wide = op.Cast(x, to=DOUBLE)
    scaled = _scaled_beyond(op.Abs(wide))
    mirrored = op.Sub(op.Mul(exact(2), _power_of_square(op.Min(wide, exact(0)), 1)), scaled)
    return op.CastLike(op.Where(op.Less(wide, exact(0)), mirrored, scaled), x)


def _log_of_normal(x: ir.Value) -> Any:
    """Below, from the scaled tail: the probability itself would be zero."""
    x = in_floats(x)
    wide = op.Cast(x, to=DOUBLE)
    scaled = op.Mul(wide, exact(math.sqrt(0.5)))
    low = op.Min(scaled, exact(0))
    tail = op.Sub(op.Log(op.Div(_scaled_beyond(op.Neg(low)), exact(2))), op.Mul(low, low))
    typed: Any = op.Neg(op.Div(_complement_in_double(op.Max(scaled, exact(0))), exact(2)))
    typed.dtype = DOUBLE
    rest = log_of_one_and(typed, typed)
    return op.CastLike(op.Where(op.Less(wide, exact(0)), tail, rest), x)


def _with_sign_of(x: ir.Value, sign: Any) -> Any:
    if not isinstance(sign, ir.Value):
        return op.Neg(op.Abs(x)) if math.copysign(1, sign) < 0 else op.Abs(x)
    negative = is_negative(sign, number(0, sign))
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


def _log_sigmoid(x: ir.Value) -> Any:
    rest = log_of_one_and(op.Exp(op.Neg(op.Abs(x))), x)
    return op.Sub(op.Min(x, number(0, x)), rest)


def _log_of_sum(left: ir.Value, right: ir.Value, *, base: float = math.e) -> Any:
    """Of both to a power of the base; equal ones may be infinite."""
    scale = number(math.log(base), left)
    power = op.Exp(op.Neg(op.Mul(op.Abs(op.Sub(left, right)), scale)))
    rest = op.Div(log_of_one_and(power, left), scale)
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
    "aten::erfc": _complement_of_erf,
    "aten::special_erfc": _complement_of_erf,
    "aten::special_erfcx": _scaled_complement_of_erf,
    "aten::special_log_ndtr": _log_of_normal,
    "aten::copysign.Tensor": _with_sign_of,
    "aten::copysign.Scalar": _with_sign_of,
    "aten::fmax": partial(_ignoring_nan, op.Max),
    "aten::fmin": partial(_ignoring_nan, op.Min),
    "aten::rrelu_with_noise_functional": _randomised_relu,
}
