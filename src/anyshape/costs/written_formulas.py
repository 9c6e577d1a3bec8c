"""Formulas of sizes as they are written: for people and Python `(seq + 1)//2`, for a page `Math.floor((d[1]+1)/2)`.

Both come from one tree, and mean the same whole numbers; a page's are exact up to 2**53, as its numbers are.
"""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
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
    return _formula_of(_tree_of(size), dims)


def write_condition(condition: Condition, dims: Sequence[str]) -> WrittenFormula:
    return _formula_of(ast.parse(str(condition), mode="eval").body, dims)


def _formula_of(tree: ast.expr, dims: Sequence[str]) -> WrittenFormula:
    text = ast.unparse(ast.fix_missing_locations(tree))
    for sign in ("//", "**", "*", "%"):
        text = text.replace(f" {sign} ", sign)
    return WrittenFormula(text, _javascript(tree, {name: f"d[{place}]" for place, name in enumerate(dims)}))


# ---- from sympy's arithmetic


@functools.lru_cache(maxsize=1 << 14)
def _tree_of(size: Size) -> ast.expr:
    """Parts of a formula are parts of many others, and take long to be put over one denominator."""
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
    "SizeChoice": lambda size: ast.IfExp(*map(_tree_of, size.args)),
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
    return _SPELLINGS[type(node)](node, lambda part, around=0: _javascript(part, dims, around), dims)


_Spell = Callable[..., str]
"""A part in JavaScript, with brackets where it binds more weakly than what is around it."""


def _spelled_pair(node: ast.BinOp, spell: _Spell, _: Mapping[str, str]) -> tuple[str, int]:
    if isinstance(node.op, ast.FloorDiv):
        return f"Math.floor({spell(node.left, 7)}/{spell(node.right, _UNARY)})", _CALL
    if isinstance(node.op, ast.Mod):
        by = spell(node.right, _UNARY)
        return f"({spell(node.left, 7)}%{by}+{by})%{by}", 7
    if isinstance(node.op, ast.Pow):
        return f"Math.pow({spell(node.left)},{spell(node.right)})", _CALL
    sign, strength = _SIGNS[type(node.op)]
    right = spell(node.right, strength + 1)
    return f"{spell(node.left, strength)}{sign}{f'({right})' if right.startswith('-') else right}", strength


def _spelled_row(parts: Sequence[ast.expr], kind: ast.AST, spell: _Spell) -> tuple[str, int]:
    sign, strength = _SIGNS[type(kind)]
    return sign.join(spell(part, strength + 1) for part in parts), strength


_SPELLINGS: Mapping[type[ast.expr], Callable[[Any, _Spell, Mapping[str, str]], tuple[str, int]]] = {
    ast.Name: lambda node, _, dims: (dims[node.id], _CALL),
    ast.Constant: lambda node, *_: (str(node.value).lower(), _CALL if node.value >= 0 else _UNARY),
    ast.UnaryOp: lambda node, spell, _: (
        ("!" if isinstance(node.op, ast.Not) else "-") + spell(node.operand, _CALL),
        _UNARY,
    ),
    ast.BinOp: _spelled_pair,
    ast.Compare: lambda node, spell, _: _spelled_row([node.left, *node.comparators], node.ops[0], spell),
    ast.BoolOp: lambda node, spell, _: _spelled_row(node.values, node.op, spell),
    ast.IfExp: lambda node, spell, _: (f"{spell(node.test, 1)}?{spell(node.body, 1)}:{spell(node.orelse)}", 0),
    ast.Call: lambda node, spell, _: (f"Math.{node.func.id}({','.join(map(spell, node.args))})", _CALL),
}


# ---- computed in Python

_Evaluate = Callable[[Sizes], int]


@functools.lru_cache(maxsize=1 << 16)
def _evaluator_of_text(text: str) -> _Evaluate:
    return _evaluator_of(ast.parse(text, mode="eval").body)


def _evaluator_of(node: ast.expr) -> _Evaluate:
    return _EVALUATORS[type(node)](node)


def _of_parts(compute: Callable[[Iterable[int]], Any], *parts: ast.expr) -> _Evaluate:
    inner = [_evaluator_of(part) for part in parts]
    return lambda sizes: compute(part(sizes) for part in inner)


def _of_pair(node: ast.BinOp) -> _Evaluate:
    compute = operator.pow if isinstance(node.op, ast.Pow) else OPERATORS[type(node.op)]
    return _of_parts(lambda pair: compute(*pair), node.left, node.right)


def _of_relation(node: ast.Compare) -> _Evaluate:
    compute = RELATIONS[next(sign for sign, kind in _COMPARED.items() if isinstance(node.ops[0], kind))]
    return _of_parts(lambda pair: compute(*pair), node.left, node.comparators[0])


def _of_choice(node: ast.IfExp) -> _Evaluate:
    asked, one, other = map(_evaluator_of, (node.test, node.body, node.orelse))
    return lambda sizes: one(sizes) if asked(sizes) else other(sizes)  # what is not taken may divide by zero


_EVALUATORS: Mapping[type[ast.expr], Callable[[Any], _Evaluate]] = {
    ast.Name: lambda node: operator.itemgetter(node.id),
    ast.Constant: lambda node: lambda _: node.value,
    ast.UnaryOp: lambda node: _of_parts(
        (lambda one: not next(iter(one))) if isinstance(node.op, ast.Not) else lambda one: -next(iter(one)),
        node.operand,
    ),
    ast.BinOp: _of_pair,
    ast.Compare: _of_relation,
    ast.BoolOp: lambda node: _of_parts(all if isinstance(node.op, ast.And) else any, *node.values),
    ast.IfExp: _of_choice,
    ast.Call: lambda node: _of_parts(min if node.func.id == "min" else max, *node.args),
}
