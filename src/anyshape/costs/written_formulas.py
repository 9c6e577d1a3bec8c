"""Formulas of sizes as they are written: for people and Python `(seq + 1)//2`, for a page `Math.floor((d[1]+1)/2)`.

Both come from one tree, and mean the same whole numbers; a page's are exact up to 2**53, as its numbers are.
"""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy

from anyshape.sizes.expressions import RELATION_NAMES, Size
from anyshape.sizes.notation import OPERATORS, RELATIONS, Condition, Sizes


@dataclass(frozen=True)
class WrittenFormula:
    """A formula, or a relation between two."""

    text: str
    js: str
    """The sizes of the dims, in their order, are `d`."""

    def value(self, sizes: Sizes) -> int | None:
        """At these sizes; None where it divides by zero."""
        try:
            return int(_evaluator_of_text(self.text)(sizes))
        except ZeroDivisionError:
            return None


def write_size(size: Size, dims: Sequence[str]) -> WrittenFormula:
    """KeyError for what has no such form."""
    return _written(_tree_of(size), dims)


def write_condition(condition: Condition, dims: Sequence[str]) -> WrittenFormula:
    return _written(ast.parse(str(condition), mode="eval").body, dims)


def _written(tree: ast.expr, dims: Sequence[str]) -> WrittenFormula:
    text = ast.unparse(ast.fix_missing_locations(tree))
    for sign in ("//", "**", "*", "%"):
        text = text.replace(f" {sign} ", sign)
    return WrittenFormula(text, _javascript(tree, {name: f"d[{place}]" for place, name in enumerate(dims)}))


# ---- from sympy's arithmetic


def _tree_of(size: Size) -> ast.expr:
    if isinstance(size, sympy.Symbol):
        return ast.Name(size.name)
    if size in (sympy.true, sympy.false):
        return ast.Constant(value=bool(size))
    if isinstance(size, sympy.Rational):
        return _quotient(ast.Constant(value=int(size.p)), ast.Constant(value=int(size.q)))
    if isinstance(size, (sympy.Add, sympy.Mul, sympy.Pow)):
        numerator, denominator = sympy.together(size).as_numer_denom()
        if denominator != 1:  # only what divides without a rest is no floor
            return _quotient(_tree_of(numerator), _tree_of(denominator))
    return _WRITERS[type(size).__name__](size)


def _quotient(over: ast.expr, under: ast.expr) -> ast.expr:
    if isinstance(under, ast.Constant) and under.value == 1:
        return over
    return ast.BinOp(over, ast.FloorDiv(), under)


def _sum_tree(size: Size) -> ast.expr:
    """As people write it: numbers last, and what is taken away behind the rest."""
    terms = sorted(size.args, key=lambda term: (term.could_extract_minus_sign(), not term.free_symbols, str(term)))
    tree = _tree_of(terms[0])
    for term in terms[1:]:
        sign: ast.operator = ast.Sub() if term.could_extract_minus_sign() else ast.Add()
        tree = ast.BinOp(tree, sign, _tree_of(-term if isinstance(sign, ast.Sub) else term))
    return tree


def _product_tree(size: Size) -> ast.expr:
    number, factors = size.as_coeff_mul()
    trees = [_tree_of(factor) for factor in sorted(factors, key=str)]
    if abs(number) != 1:
        trees = [ast.Constant(value=abs(int(number))), *trees]
    tree = functools.reduce(lambda left, right: ast.BinOp(left, ast.Mult(), right), trees)
    return ast.UnaryOp(ast.USub(), tree) if number < 0 else tree


def _floor_tree(size: Size, sign: int = 1) -> ast.expr:
    numerator, denominator = sympy.together(sign * size.args[0]).as_numer_denom()
    return _quotient(_tree_of(numerator), _tree_of(denominator))


def _call_tree(name: str, *args: Size) -> ast.expr:
    return ast.Call(ast.Name(name), [_tree_of(arg) for arg in sorted(args, key=str)], [])


def _choice_tree(size: Size) -> ast.expr:
    *cases, (last, _) = size.args
    tree = _tree_of(last)
    for value, condition in reversed(cases):
        tree = ast.IfExp(_tree_of(condition), _tree_of(value), tree)
    return tree


_COMPARED: Mapping[str, type[ast.cmpop]] = {
    "==": ast.Eq, "!=": ast.NotEq, "<=": ast.LtE, "<": ast.Lt, ">=": ast.GtE, ">": ast.Gt,
}  # fmt: skip


def _relation_tree(size: Size) -> ast.expr:
    sign = _COMPARED[RELATION_NAMES[type(size).__name__]]()
    return ast.Compare(_tree_of(size.args[0]), [sign], [_tree_of(size.args[1])])


def _boolean_tree(kind: ast.boolop, size: Size) -> ast.expr:
    return ast.BoolOp(kind, [_tree_of(part) for part in sorted(size.args, key=str)])


_WRITERS: Mapping[str, Callable[[Any], ast.expr]] = {
    "Add": _sum_tree,
    "Mul": _product_tree,
    "Pow": lambda size: ast.BinOp(_tree_of(size.args[0]), ast.Pow(), _tree_of(size.args[1])),
    "floor": _floor_tree,
    "ceiling": lambda size: ast.UnaryOp(ast.USub(), _floor_tree(size, -1)),
    "Mod": lambda size: ast.BinOp(_tree_of(size.args[0]), ast.Mod(), _tree_of(size.args[1])),
    "Min": lambda size: _call_tree("min", *size.args),
    "Max": lambda size: _call_tree("max", *size.args),
    "Abs": lambda size: _call_tree("max", size.args[0], -size.args[0]),
    "Piecewise": _choice_tree,
    "And": lambda size: _boolean_tree(ast.And(), size),
    "Or": lambda size: _boolean_tree(ast.Or(), size),
    "Not": lambda size: ast.UnaryOp(ast.Not(), _tree_of(size.args[0])),
    **dict.fromkeys(RELATION_NAMES, _relation_tree),
}


# ---- to JavaScript

_SIGNS: Mapping[type[ast.AST], tuple[str, int]] = {
    ast.Or: ("||", 1), ast.And: ("&&", 2), ast.Eq: ("===", 4), ast.NotEq: ("!==", 4), ast.LtE: ("<=", 4),
    ast.Lt: ("<", 4), ast.GtE: (">=", 4), ast.Gt: (">", 4), ast.Add: ("+", 6), ast.Sub: ("-", 6), ast.Mult: ("*", 7),
    ast.BitOr: ("|", 3), ast.BitXor: ("^", 3), ast.BitAnd: ("&", 3),
}  # fmt: skip
"""How each is written there, and how strongly it binds; what binds more weakly inside gets brackets."""
_UNARY, _CALL = 8, 9


def _javascript(node: ast.expr, dims: Mapping[str, str], around: int = 0) -> str:
    text, strength = _with_strength(node, dims)
    return f"({text})" if strength < around else text


def _with_strength(node: ast.expr, dims: Mapping[str, str]) -> tuple[str, int]:
    def inner(part: ast.expr, around: int = 0) -> str:
        return _javascript(part, dims, around)

    match node:
        case ast.Name(id=name):
            return dims[name], _CALL
        case ast.Constant(value=number):
            return str(number).lower(), _CALL if number >= 0 else _UNARY
        case ast.UnaryOp(op=op, operand=operand):
            return ("!" if isinstance(op, ast.Not) else "-") + inner(operand, _CALL), _UNARY
        case ast.BinOp(left=left, op=ast.FloorDiv(), right=right):
            return f"Math.floor({inner(left, 7)}/{inner(right, _UNARY)})", _CALL
        case ast.BinOp(left=left, op=ast.Mod(), right=right):
            by = inner(right, _UNARY)
            return f"({inner(left, 7)}%{by}+{by})%{by}", 7
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return f"Math.pow({inner(left)},{inner(right)})", _CALL
        case ast.BinOp(left=left, op=op, right=right):
            sign, strength = _SIGNS[type(op)]
            return f"{inner(left, strength)}{sign}{inner(right, strength + 1)}", strength
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            sign, strength = _SIGNS[type(op)]
            return f"{inner(left, strength + 1)}{sign}{inner(right, strength + 1)}", strength
        case ast.BoolOp(op=op, values=values):
            sign, strength = _SIGNS[type(op)]
            return sign.join(inner(value, strength + 1) for value in values), strength
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return f"{inner(test, 1)}?{inner(body, 1)}:{inner(orelse)}", 0
        case ast.Call(func=ast.Name(id=name), args=args):
            return f"Math.{name}({','.join(map(inner, args))})", _CALL
    raise KeyError(ast.dump(node))


# ---- computed in Python

_Evaluate = Callable[[Sizes], int]


@functools.lru_cache(maxsize=1 << 16)
def _evaluator_of_text(text: str) -> _Evaluate:
    return _evaluator_of(ast.parse(text, mode="eval").body)


def _evaluator_of(node: ast.expr) -> _Evaluate:
    match node:
        case ast.Name(id=name):
            return operator.itemgetter(name)
        case ast.Constant(value=number):
            return lambda _: number  # type: ignore[return-value]
        case ast.UnaryOp(op=op, operand=operand):
            inner = _evaluator_of(operand)
            return (lambda sizes: not inner(sizes)) if isinstance(op, ast.Not) else lambda sizes: -inner(sizes)
        case ast.BinOp(left=left, op=op, right=right):
            return _of_two(operator.pow if isinstance(op, ast.Pow) else OPERATORS[type(op)], left, right)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _of_two(
                RELATIONS[next(sign for sign, kind in _COMPARED.items() if isinstance(op, kind))], left, right
            )
        case ast.BoolOp(op=op, values=values):
            parts, choose = [_evaluator_of(value) for value in values], all if isinstance(op, ast.And) else any
            return lambda sizes: choose(part(sizes) for part in parts)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            asked, one, other = map(_evaluator_of, (test, body, orelse))
            return lambda sizes: one(sizes) if asked(sizes) else other(sizes)
        case ast.Call(func=ast.Name(id=name), args=args):
            parts, pick = [_evaluator_of(one) for one in args], min if name == "min" else max
            return lambda sizes: pick(part(sizes) for part in parts)
    raise KeyError(ast.dump(node))


def _of_two(compute: Callable[[int, int], int], left: ast.expr, right: ast.expr) -> _Evaluate:
    first, second = _evaluator_of(left), _evaluator_of(right)
    return lambda sizes: compute(first(sizes), second(sizes))
