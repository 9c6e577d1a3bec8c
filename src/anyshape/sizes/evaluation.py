"""Expressions of sizes computed on arrays: one entry for each of many calls."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import lru_cache, reduce
from typing import Any

import numpy as np
import sympy

Values = np.ndarray[Any, Any]


Known = dict[sympy.Basic, Any]
"""What expressions are that were computed before, with the same values of their symbols."""


NO_VALUE = (KeyError, TypeError, ValueError, ArithmeticError)
"""How `evaluate` ends, inside `raising`, where an expression has no value."""


def raising() -> np.errstate:
    """Inside, a division by zero or a number that is too large is an error."""
    return np.errstate(divide="raise", invalid="raise", over="raise")


@lru_cache(maxsize=1 << 16)
def symbols_of(expression: sympy.Basic) -> frozenset[sympy.Symbol]:
    """As sympy's `free_symbols`, which goes through every part as often as it occurs."""
    if isinstance(expression, sympy.Symbol):
        return frozenset([expression])
    return frozenset().union(*(symbols_of(part) for part in expression.args))


def evaluate(expression: sympy.Basic, columns: Mapping[sympy.Symbol, Any], known: Known | None = None) -> Any:
    """The expression where its symbols have these values; KeyError for what has none and for unknown functions.

    Parts that occur often are computed once: sizes of a loop that halves them are small as a graph, and vast as a tree.
    With `known`, also those of earlier expressions.
    """
    return _evaluate(expression, columns, {} if known is None else known)


def _evaluate(expression: sympy.Basic, columns: Mapping[sympy.Symbol, Any], known: Known) -> Any:
    if expression not in known:
        known[expression] = _computed(expression, columns, known)
    return known[expression]


def _computed(expression: sympy.Basic, columns: Mapping[sympy.Symbol, Any], known: Known) -> Any:
    if isinstance(expression, sympy.Symbol):
        return columns[expression]
    if isinstance(expression, sympy.Integer):
        return int(expression)
    if isinstance(expression, sympy.Number):
        return float(expression)
    if expression in (sympy.true, sympy.false):
        return bool(expression)
    parts = [_evaluate(part, columns, known) for part in expression.args]
    return _FUNCTIONS[type(expression).__name__](*parts)


def _piecewise(*pairs: tuple[Any, Any]) -> Any:
    result = pairs[-1][0]
    for value, condition in reversed(pairs[:-1]):
        result = np.where(condition, value, result)
    return result


def _whole(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: np.asarray(function(value)).astype(np.int64)[()]


def _folded(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda *parts: reduce(function, parts)


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "Add": _folded(operator.add),
    "Mul": _folded(operator.mul),
    "Pow": operator.pow,
    "PowByNatural": operator.pow,
    "FloatPow": operator.pow,
    "Mod": operator.mod,
    "PythonMod": operator.mod,
    "FloorDiv": operator.floordiv,
    "CleanDiv": operator.floordiv,
    "IntTrueDiv": operator.truediv,
    "FloatTrueDiv": operator.truediv,
    "ToFloat": np.float64,
    "TruncToInt": _whole(np.trunc),
    "FloorToInt": _whole(np.floor),
    "CeilToInt": _whole(np.ceil),
    "RoundToInt": _whole(np.round),
    "OpaqueUnaryFn_sqrt": np.sqrt,
    "Min": _folded(np.minimum),
    "Max": _folded(np.maximum),
    "Equality": operator.eq,
    "Unequality": operator.ne,
    "LessThan": operator.le,
    "StrictLessThan": operator.lt,
    "GreaterThan": operator.ge,
    "StrictGreaterThan": operator.gt,
    "And": _folded(np.logical_and),
    "Or": _folded(np.logical_or),
    "Not": np.logical_not,
    "ExprCondPair": lambda value, condition: (value, condition),
    "Piecewise": _piecewise,
}
"""torch's and sympy's functions of sizes, on arrays."""
