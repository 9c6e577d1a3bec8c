"""Expressions and conditions made ready for many calls: nested functions in the place of a tree that is walked."""

from __future__ import annotations

import ast
import bisect
import operator
from collections.abc import Callable, Mapping

from anyshape.declaration.notation import Condition, Expression

Evaluate = Callable[[Mapping[str, int]], int]
Holds = Callable[[Mapping[str, int]], bool]

_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_RELATIONS: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "!=": operator.ne,
}


def evaluator(expression: Expression) -> Evaluate:
    """The size of an expression from those of its dims, as a function."""
    return _function(ast.parse(expression.text, mode="eval").body)


def _function(node: ast.expr) -> Evaluate:
    match node:
        case ast.Name(id=name):
            return operator.itemgetter(name)
        case ast.Constant(value=int(number)):
            return lambda _: number
        case ast.UnaryOp(operand=operand):
            inner = _function(operand)
            return lambda sizes: -inner(sizes)
        case ast.BinOp(left=left, op=op, right=right):
            compute, first, second = _OPERATORS[type(op)], _function(left), _function(right)
            return lambda sizes: compute(first(sizes), second(sizes))
        case ast.Call(func=ast.Name(id=name), args=args):
            choose, parts = (min if name == "min" else max), [_function(part) for part in args]
            return lambda sizes: choose(part(sizes) for part in parts)
    raise AssertionError(ast.dump(node))  # `parse_expression` lets nothing else through


def holder(condition: Condition) -> Holds:
    """Whether a condition holds, as a function; one that divides by zero does not."""
    compare, left, right = _RELATIONS[condition.relation], evaluator(condition.left), evaluator(condition.right)

    def holds(sizes: Mapping[str, int]) -> bool:
        try:
            return compare(left(sizes), right(sizes))
        except ZeroDivisionError:
            return False

    return holds


_LARGEST_SIZE = 2**40


def solve_for(dim: str, evaluate: Evaluate, size: int, known: Mapping[str, int]) -> int | None:
    """The one size of `dim` that gives this size; None where there is none, or several, or it is not found.

    Expressions of sizes grow with them, so halving finds it; `n // 2` = 3 has two answers and gets none.
    """
    trial = dict(known)

    def at(candidate: int) -> int:
        trial[dim] = candidate
        return evaluate(trial)

    try:
        found = bisect.bisect_left(range(_LARGEST_SIZE), size, key=at)
        return found if at(found) == size and at(found + 1) != size else None
    except ZeroDivisionError:
        return None
