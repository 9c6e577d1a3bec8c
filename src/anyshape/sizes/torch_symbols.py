"""torch's symbolic sizes in the user's words: `s27 + 2*s36` becomes `seq + 2 * past`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import sympy

from anyshape.errors import DeclarationError
from anyshape.sizes.evaluation import NO_VALUE, evaluate, raising, symbols_of
from anyshape.sizes.notation import Condition, Expression, parse_condition, parse_expression

Meaning = Mapping[sympy.Symbol, Expression]
"""What each of torch's symbols is, in dims."""

_RELATIONS = {
    "Equality": "==",
    "Unequality": "!=",
    "LessThan": "<=",
    "StrictLessThan": "<",
    "GreaterThan": ">=",
    "StrictGreaterThan": ">",
}
_LARGEST_POWER = 4


def to_expression(value: Any, meaning: Meaning) -> Expression | None:
    """A size of a traced tensor as an expression; None where it has no such form."""
    if isinstance(value, int):
        return Expression(str(value))
    node = getattr(value, "node", None)
    expression = getattr(node, "expr", value)
    if not isinstance(expression, sympy.Basic):
        return None
    text = _notation(_simplified(expression, meaning))
    if text is None:
        return None
    try:
        return parse_expression(text)
    except DeclarationError:
        return None


def to_condition(condition: sympy.Basic, meaning: Meaning) -> Condition | None:
    """A guard as a condition on dims; None where it has no such form or speaks of other things."""
    relation = _RELATIONS.get(type(condition).__name__)
    if relation is None or not condition.free_symbols or not condition.free_symbols <= set(meaning):
        return None
    left, right = (_notation(_simplified(side, meaning)) for side in condition.args)
    if left is None or right is None:
        return None
    try:
        return parse_condition(f"{left} {relation} {right}")
    except DeclarationError:
        return None


def solved(condition: Condition) -> tuple[Expression, int] | None:
    """`8 * batch * seq == 24 * seq` as what must be which number: `batch`, 3; None where it has no such form."""
    if condition.relation != "==":
        return None
    left, right = (_sympified(side) for side in (condition.left, condition.right))
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


def _simplified(expression: sympy.Basic, meaning: Meaning) -> sympy.Basic:
    """The dims in place of the symbols. Only arithmetic that sympy knows is inserted, so that it may simplify."""
    replacements = {}
    for symbol in expression.free_symbols:
        if symbol in meaning:
            replacements[symbol] = _sympified(meaning[symbol])
    return expression.xreplace(replacements)


def _sympified(expression: Expression) -> sympy.Basic:
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


def _power(expression: sympy.Basic, texts: list[str]) -> str | None:
    power = expression.args[1]
    if isinstance(power, sympy.Integer) and 1 <= int(power) <= _LARGEST_POWER:
        return " * ".join([f"({texts[0]})"] * int(power))
    return None


_WRITERS: dict[str, Callable[[Any, list[str]], str | None]] = {
    "Add": lambda expression, _: _sum(expression),
    "Mul": lambda _, texts: " * ".join(f"({text})" for text in texts),
    "Pow": _power,
    "FloorDiv": lambda _, texts: f"({texts[0]}) // ({texts[1]})",
    "CleanDiv": lambda _, texts: f"({texts[0]}) // ({texts[1]})",
    "Mod": lambda _, texts: f"({texts[0]}) % ({texts[1]})",
    "PythonMod": lambda _, texts: f"({texts[0]}) % ({texts[1]})",
    "Max": lambda _, texts: f"max({', '.join(texts)})",
    "Min": lambda _, texts: f"min({', '.join(texts)})",
}
"""How to write each kind of expression, given its parts."""


def _sum(expression: sympy.Add) -> str:
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
