"""What formulas of sizes are in z3: its own whole numbers, and floats as real numbers within a rounding."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from functools import reduce
from typing import Any

from anyshape.sizes import budgets, expressions
from anyshape.sizes.expressions import Algebra
from anyshape.sizes.notation import RELATIONS


class _Floats:
    """A float is a real number within a rounding of the exact one, so that what holds for all of these holds."""

    def __init__(self, z3: Any, context: Any, add: Callable[[Any], None]) -> None:
        self._z3, self._context, self._add = z3, context, add

    def real(self, value: Any) -> Any:
        if isinstance(value, float):
            fraction = Fraction(value)
            return self._z3.Q(fraction.numerator, fraction.denominator, self._context)
        return self._z3.ToReal(value) if self._z3.is_int(value) else value

    def rounded(self, exact: Any) -> Any:
        near = self._z3.FreshReal("float", self._context)
        slack = self._z3.If(exact >= 0, exact, -exact) * self._z3.Q(1, 2**53, self._context)
        self._add(near >= exact - slack)
        self._add(near <= exact + slack)
        return near

    def fold(self, function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
        def computed(*parts: Any) -> Any:
            if not any(isinstance(part, float) or self._z3.is_real(part) for part in parts):
                return reduce(function, parts)
            return reduce(lambda left, right: self.rounded(function(self.real(left), self.real(right))), parts)

        return computed

    def divided(self, value: Any, by: Any) -> Any:
        exact = self.real(value) / self.real(by)
        is_power_of_two = isinstance(by, (int, float)) and math.frexp(by)[0] == 0.5
        return exact if is_power_of_two else self.rounded(exact)


def _bits_of(value: Any, mask: Any) -> Any:
    """`value & mask`, where one of them is a number."""
    if not isinstance(mask, int):
        value, mask = mask, value
    if mask < 0:
        return value - _bits_of(value, ~mask)
    return sum(value / 2**place % 2 * 2**place for place in range(mask.bit_length()) if mask >> place & 1)


def _power(base: Any, exponent: Any) -> Any:
    if not isinstance(exponent, int) or not 0 <= exponent <= budgets.LARGEST_POWER_WRITTEN:
        raise KeyError(exponent)
    return math.prod([base] * exponent)


def algebra_of(z3: Any, context: Any, add: Callable[[Any], None]) -> Algebra:
    """Whole numbers are z3's own, whose division goes down for positive divisors alone."""
    floats = _Floats(z3, context, add)

    def floor_division(value: Any, by: Any) -> Any:
        if isinstance(by, int):
            return value / by if by > 0 else -value / -by
        return z3.If(by > 0, value / by, -value / -by)

    def modulo(value: Any, by: Any) -> Any:
        return value % by if isinstance(by, int) and by > 0 else value - floor_division(value, by) * by

    return {
        "Add": floats.fold(operator.add),
        "Mul": floats.fold(operator.mul),
        **dict.fromkeys(("Pow", "PowByNatural"), _power),
        **dict.fromkeys(("Mod", "PythonMod"), modulo),
        **dict.fromkeys(("FloorDiv", "CleanDiv"), floor_division),
        **dict.fromkeys(("IntTrueDiv", "FloatTrueDiv"), floats.divided),
        "CeilDiv": lambda value, by: -floor_division(-value, by),
        "ModularIndexing": lambda value, by, length: modulo(floor_division(value, by), length),
        "BitwiseFn_bitwise_and": _bits_of,
        "BitwiseFn_bitwise_or": lambda a, b: a + b - _bits_of(a, b),
        "BitwiseFn_bitwise_xor": lambda a, b: a + b - 2 * _bits_of(a, b),
        "LShift": lambda value, places: value * _power(2, places),
        "RShift": lambda value, places: floor_division(value, _power(2, places)),
        "ToFloat": floats.real,
        "TruncToInt": lambda value: z3.If(value >= 0, z3.ToInt(value), -z3.ToInt(-value)),
        "FloorToInt": z3.ToInt,
        "CeilToInt": lambda value: -z3.ToInt(-value),
        "Abs": lambda value: z3.If(value >= 0, value, -value),
        "Min": lambda *parts: reduce(lambda a, b: z3.If(a <= b, a, b), parts),
        "Max": lambda *parts: reduce(lambda a, b: z3.If(a >= b, a, b), parts),
        **{name: RELATIONS[relation] for name, relation in expressions.RELATION_NAMES.items()},
        "And": lambda *parts: z3.And(*parts, context),
        "Or": lambda *parts: z3.Or(*parts, context),
        "Not": lambda part: z3.Not(part, context),
        "Where": z3.If,
    }
