"""Expressions of sizes as functions: what a tree of Python's own parser computes, made ready once for many calls."""

from __future__ import annotations

import ast
import bisect
import functools
import operator
from collections.abc import Callable, Mapping

Evaluate = Callable[[Mapping[str, int]], int]

OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
FUNCTIONS: dict[str, Callable[..., int]] = {"min": min, "max": max}


@functools.lru_cache(maxsize=4096)
def evaluator(text: str) -> Evaluate:
    """The size of an expression from those of its dims, as a function."""
    return _function(ast.parse(text, mode="eval").body)


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
            compute, first, second = OPERATORS[type(op)], _function(left), _function(right)
            return lambda sizes: compute(first(sizes), second(sizes))
        case ast.Call(func=ast.Name(id=name), args=args):
            choose, parts = FUNCTIONS[name], [_function(part) for part in args]
            return lambda sizes: choose(part(sizes) for part in parts)
    raise AssertionError(ast.dump(node))  # `parse_expression` lets nothing else through


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
