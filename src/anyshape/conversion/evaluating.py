"""Expressions of sizes computed on arrays: one entry for each of many calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np
import sympy

Values = np.ndarray[Any, Any]


def evaluate(expression: sympy.Basic, columns: Mapping[sympy.Symbol, Any]) -> Any:
    """The expression where its symbols have these values; KeyError for what has none and for unknown functions.

    Parts that occur often are computed once: sizes of a loop that halves them are small as a graph, and vast as a tree.
    """
    return _evaluate(expression, columns, {})


def _evaluate(expression: sympy.Basic, columns: Mapping[sympy.Symbol, Any], known: dict[sympy.Basic, Any]) -> Any:
    if expression not in known:
        known[expression] = _computed(expression, columns, known)
    return known[expression]


def _computed(expression: sympy.Basic, columns: Mapping[sympy.Symbol, Any], known: dict[sympy.Basic, Any]) -> Any:
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


def _folded(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda *parts: reduce(function, parts)


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "Add": _folded(np.add),
    "Mul": _folded(np.multiply),
    "Pow": np.power,
    "PowByNatural": np.power,
    "FloatPow": np.power,
    "Mod": np.mod,
    "PythonMod": np.mod,
    "FloorDiv": np.floor_divide,
    "CleanDiv": np.floor_divide,
    "IntTrueDiv": np.true_divide,
    "FloatTrueDiv": np.true_divide,
    "ToFloat": np.float64,
    "TruncToInt": np.trunc,
    "FloorToInt": np.floor,
    "CeilToInt": np.ceil,
    "RoundToInt": np.round,
    "OpaqueUnaryFn_sqrt": np.sqrt,
    "Min": _folded(np.minimum),
    "Max": _folded(np.maximum),
    "Equality": np.equal,
    "Unequality": np.not_equal,
    "LessThan": np.less_equal,
    "StrictLessThan": np.less,
    "GreaterThan": np.greater_equal,
    "StrictGreaterThan": np.greater,
    "And": _folded(np.logical_and),
    "Or": _folded(np.logical_or),
    "Not": np.logical_not,
    "ExprCondPair": lambda value, condition: (value, condition),
    "Piecewise": _piecewise,
}
"""torch's and sympy's functions of sizes, on arrays."""
