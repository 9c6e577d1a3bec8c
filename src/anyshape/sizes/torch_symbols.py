"""torch's symbolic sizes: in the user's words, where `s27 + 2*s36` is `seq + 2 * past`, and computed for many calls."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from functools import lru_cache, reduce
from typing import Any, TypeVar

import numpy as np
import sympy

from anyshape.errors import DeclarationError
from anyshape.sizes import budgets
from anyshape.sizes.notation import Condition, Expression, parse_condition, parse_expression

Meaning = Mapping[sympy.Symbol, Expression]
"""What each of torch's symbols is, in dims."""


def to_expression(value: Any, meaning: Meaning) -> Expression | None:
    """A size of a traced tensor as an expression; None where it has no such form."""
    if isinstance(value, int):
        return Expression(str(value))
    node = getattr(value, "node", None)
    expression = getattr(node, "expr", value)
    if not isinstance(expression, sympy.Basic):
        return None
    text = _notation(_in_dims(expression, meaning))
    return None if text is None else _parsed(parse_expression, text)


_RELATIONS = {
    "Equality": "==",
    "Unequality": "!=",
    "LessThan": "<=",
    "StrictLessThan": "<",
    "GreaterThan": ">=",
    "StrictGreaterThan": ">",
}


def to_condition(condition: sympy.Basic, meaning: Meaning) -> Condition | None:
    """A guard as a condition on dims; None where it has no such form or speaks of other things."""
    relation = _RELATIONS.get(type(condition).__name__)
    if relation is None or not condition.free_symbols or not condition.free_symbols <= set(meaning):
        return None
    left, right = (_notation(_in_dims(side, meaning)) for side in condition.args)
    return None if left is None or right is None else _parsed(parse_condition, f"{left} {relation} {right}")


_T = TypeVar("_T")


def _parsed(parse: Callable[[str], _T], text: str) -> _T | None:
    """None for what the notation does not take: too long, too deep, or with a name that is none."""
    try:
        return parse(text)
    except DeclarationError:
        return None


def solved(condition: Condition) -> tuple[Expression, int] | None:
    """`8 * batch * seq == 24 * seq` as what must be which number: `batch`, 3; None where it has no such form."""
    if condition.relation != "==":
        return None
    left, right = (_as_sympy(side) for side in (condition.left, condition.right))
    if not right.free_symbols or not left.free_symbols:
        left, right = (right, left) if right.free_symbols else (left, right)
    if right == 0:
        return None
    size, number = sympy.fraction(sympy.together(sympy.cancel(left / right)))
    if not size.free_symbols:
        size, number = number, size
    text = _notation(size)
    if text is None or not size.free_symbols or not isinstance(number, sympy.Integer) or int(number) < 1:
        return None
    return parse_expression(text), int(number)


def _in_dims(expression: sympy.Basic, meaning: Meaning) -> sympy.Basic:
    """The dims in place of the symbols. Only arithmetic that sympy knows is inserted, so that it may simplify."""
    replacements = {}
    for symbol in expression.free_symbols:
        if symbol in meaning:
            replacements[symbol] = _as_sympy(meaning[symbol])
    return expression.xreplace(replacements)


def _as_sympy(expression: Expression) -> sympy.Basic:
    """As sympy's arithmetic; what it would write in its own words, such as floor(), stays one symbol."""
    names: dict[str, Any] = {name: sympy.Symbol(name, integer=True, positive=True) for name in expression.names}
    if re.search(r"//|%|\bmin\(|\bmax\(", expression.text):
        return sympy.Symbol(f"({expression.text})", integer=True, positive=True)
    return sympy.expand(expression.value(names))


def _notation(expression: sympy.Basic) -> str | None:
    """Our notation for a sympy expression, or None."""
    if isinstance(expression, sympy.Symbol):
        return str(expression.name)
    if isinstance(expression, sympy.Integer):
        return str(int(expression))
    parts = [_notation(argument) for argument in expression.args]
    texts = [part for part in parts if part is not None]
    write = _WRITERS.get(type(expression).__name__)
    return write(expression, texts) if write is not None and len(texts) == len(parts) else None


def _power_text(expression: sympy.Basic, texts: list[str]) -> str | None:
    power = expression.args[1]
    if isinstance(power, sympy.Integer) and 1 <= int(power) <= budgets.LARGEST_POWER:
        return " * ".join([f"({texts[0]})"] * int(power))
    return None


_WRITERS: dict[str, Callable[[Any, list[str]], str | None]] = {
    "Add": lambda expression, _: _sum_text(expression),
    "Mul": lambda _, texts: " * ".join(f"({text})" for text in texts),
    "Pow": _power_text,
    "FloorDiv": lambda _, texts: f"({texts[0]}) // ({texts[1]})",
    "CleanDiv": lambda _, texts: f"({texts[0]}) // ({texts[1]})",
    "Mod": lambda _, texts: f"({texts[0]}) % ({texts[1]})",
    "PythonMod": lambda _, texts: f"({texts[0]}) % ({texts[1]})",
    "Max": lambda _, texts: f"max({', '.join(texts)})",
    "Min": lambda _, texts: f"min({', '.join(texts)})",
}
"""How to write each kind of expression, given its parts."""


def _sum_text(expression: sympy.Add) -> str:
    """As people write it: names first, numbers last, `- 3` instead of `+ -3`."""
    terms = sorted(expression.args, key=lambda term: (_is_negative(term), not term.free_symbols))
    text = ""
    for term in terms:
        negative = _is_negative(term)
        part = f"({_notation(-term if negative else term)})"
        text += f"-{part}" if negative and not text else f" - {part}" if negative else f" + {part}" if text else part
    return text


def _is_negative(term: sympy.Basic) -> bool:
    return bool(term.could_extract_minus_sign())


# ---- computed: for one call, or for many at once as arrays

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
    return _value_of(expression, columns, {} if known is None else known)


def _value_of(expression: sympy.Basic, columns: Mapping[sympy.Symbol, Any], known: Known) -> Any:
    if expression not in known:
        known[expression] = _new_value_of(expression, columns, known)
    return known[expression]


def _new_value_of(expression: sympy.Basic, columns: Mapping[sympy.Symbol, Any], known: Known) -> Any:
    if isinstance(expression, sympy.Symbol):
        return columns[expression]
    if isinstance(expression, sympy.Integer):
        return int(expression)
    if isinstance(expression, sympy.Number):
        return float(expression)
    if expression in (sympy.true, sympy.false):
        return bool(expression)
    parts = [_value_of(part, columns, known) for part in expression.args]
    return _FUNCTIONS[type(expression).__name__](*parts)


def _piecewise(*pairs: tuple[Any, Any]) -> Any:
    result = pairs[-1][0]
    for value, condition in reversed(pairs[:-1]):
        result = np.where(condition, value, result)
    return result


def _rounding(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: np.asarray(function(value)).astype(np.int64)[()]


def _folding(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda *parts: reduce(function, parts)


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "Add": _folding(operator.add),
    "Mul": _folding(operator.mul),
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
    "TruncToInt": _rounding(np.trunc),
    "FloorToInt": _rounding(np.floor),
    "CeilToInt": _rounding(np.ceil),
    "RoundToInt": _rounding(np.round),
    "OpaqueUnaryFn_sqrt": np.sqrt,
    "Min": _folding(np.minimum),
    "Max": _folding(np.maximum),
    "Equality": operator.eq,
    "Unequality": operator.ne,
    "LessThan": operator.le,
    "StrictLessThan": operator.lt,
    "GreaterThan": operator.ge,
    "StrictGreaterThan": operator.gt,
    "And": _folding(np.logical_and),
    "Or": _folding(np.logical_or),
    "Not": np.logical_not,
    "ExprCondPair": lambda value, condition: (value, condition),
    "Piecewise": _piecewise,
}
"""torch's and sympy's functions of sizes, on arrays."""


def holds(condition: sympy.Basic, meaning: Meaning, sizes: Mapping[str, int]) -> bool:
    """Whether a guard holds at these sizes; True where that cannot be told."""
    try:
        values = {s: meaning[s].value(sizes) for s in symbols_of(condition)}
        with raising():
            return bool(evaluate(condition, values))
    except NO_VALUE:
        return True


def integers(condition: sympy.Basic) -> set[int]:
    """The whole numbers in a guard."""
    return {abs(int(number)) for number in condition.atoms(sympy.Integer)}
