"""Sizes in sympy's arithmetic, as files and traces hold them: a number, `batch`, `2*seq + 1`, `s27 + 2*s36`.

Those of a file are worked with as they are, and the order of a product is kept: `batch*heads` and `heads*batch` are the
same number, but lie differently in memory. Those of torch are put into the user's words, where `s27 + 2*s36` is
`seq + 2 * past`, and computed for many calls at once.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, reduce
from typing import Any, TypeVar

import numpy as np
import onnx_ir as ir
import sympy
from sympy.printing.precedence import PRECEDENCE
from sympy.printing.str import StrPrinter

from anyshape.errors import AnyshapeError, DeclarationError
from anyshape.sizes import budgets
from anyshape.sizes.notation import RELATIONS, Condition, Expression, parse_condition, parse_expression

Size = Any
"""A sympy expression; sympy has no types."""
Shape = tuple[Size, ...]
Factors = tuple[Size, ...]
"""What a size is the product of, in the order in which it lies in memory."""

ONE = sympy.Integer(1)


def dim_symbol(name: str) -> Size:
    return sympy.Symbol(name, integer=True, positive=True)


def number(n: int) -> Size:
    return sympy.Integer(int(n))


def is_number(size: Size) -> bool:
    return bool(size.is_Integer)


def product(sizes: Iterable[Size]) -> Size:
    return math.prod(sizes, start=ONE)


def from_ir(shape: ir.Shape | None) -> Shape | None:
    """The shape of a value as expressions, None where not even the rank is known."""
    return None if shape is None else tuple(from_dim(dim) for dim in shape)


def to_ir(shape: Sequence[Size]) -> ir.Shape:
    return ir.Shape([int(size) if is_number(size) else ir.SymbolicDim(size) for size in shape])


def from_dim(dim: int | ir.SymbolicDim) -> Size:
    if isinstance(dim, int):
        return number(dim)
    if dim.value is None:
        return sympy.Dummy("unknown", integer=True, positive=True)  # no two are equal, unlike symbols of one name
    if len(dim.value) > budgets.LONGEST_SIZE_TEXT:
        raise AnyshapeError("a size of this file is too long an expression to work with")
    return _tidy_size(dim._expr)  # noqa: SLF001  the expression behind a dim has no public name


@functools.lru_cache(maxsize=4096)
def _tidy_size(size: Size) -> Size:
    """With symbols that are known to be positive, floors of floors merged and maxima with 0 left out."""
    size = sympy.sympify(size)
    size = size.xreplace({s: dim_symbol(s.name) for s in size.free_symbols if not isinstance(s, sympy.Dummy)})
    if sum(1 for _ in sympy.preorder_traversal(size)) > budgets.MOST_LEAVES_OF_A_SIZE:
        raise AnyshapeError("a size of this file is too large an expression to work with")
    size = size.replace(sympy.Max, _without_zero)
    size = size.replace(sympy.floor, _merged_floor)
    return sympy.expand(size) if size.is_Add else size


def _without_zero(*args: Size) -> Size:
    rest = [arg for arg in args if arg != 0]
    return rest[0] if len(rest) == 1 else sympy.Max(*args)


def _merged_floor(inner: Size) -> Size:
    """floor((floor(a/b) + c)/d) is floor((a + b*c)/(b*d)): strided layers on top of each other stay short."""
    numerator, denominator = sympy.together(inner).as_numer_denom()
    if not (denominator.is_Integer and denominator > 0):
        return sympy.floor(inner)
    floors = [term for term in sympy.Add.make_args(numerator) if isinstance(term, sympy.floor)]
    if len(floors) == 1:
        rest = numerator - floors[0]
        a, b = sympy.together(floors[0].args[0]).as_numer_denom()
        if rest.is_Integer and b.is_Integer:
            return sympy.floor(sympy.together((a + b * rest) / (b * denominator)))
    return sympy.floor(inner)


def evaluated(size: Size, sizes: Mapping[Size, int]) -> int | None:
    """The number that a size is for these sizes of the dims; None where it depends on something else."""
    if is_number(size):
        return int(size)
    if not size.free_symbols <= set(sizes):
        return None
    value = size.xreplace({symbol: sympy.Integer(n) for symbol, n in sizes.items()})
    return int(value) if value.is_Integer else None


def spelled(size: Size) -> str:
    """As a reader writes it: `seq//2 + 1`, not `floor(seq/2) + 1`."""
    return str(_Printer().doprint(size))


class _Printer(StrPrinter):  # type: ignore[misc]
    def _print_floor(self, expr: Size) -> str:
        numerator, denominator = sympy.together(expr.args[0]).as_numer_denom()
        if not denominator.is_Integer:
            return f"floor({self._print(expr.args[0])})"
        text = self._print(numerator)
        return f"{text if numerator.is_Atom else f'({text})'}//{self._print(denominator)}"

    def parenthesize(self, item: Size, level: int, strict: bool = False) -> str:
        text = str(super().parenthesize(item, level, strict=strict))
        return f"({text})" if isinstance(item, sympy.floor) and level > PRECEDENCE["Add"] else text


# ---- torch's symbolic sizes, in the user's words

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
    return None if text is None else _parsed_or_none(parse_expression, text)


RELATION_NAMES = {
    "Equality": "==",
    "Unequality": "!=",
    "LessThan": "<=",
    "StrictLessThan": "<",
    "GreaterThan": ">=",
    "StrictGreaterThan": ">",
}


def to_condition(condition: sympy.Basic, meaning: Meaning) -> Condition | None:
    """A guard as a condition on dims; None where it has no such form or speaks of other things."""
    relation = RELATION_NAMES.get(type(condition).__name__)
    if relation is None or not symbols_of(condition) or not symbols_of(condition) <= set(meaning):
        return None
    left, right = (_notation(_in_dims(side, meaning)) for side in condition.args)
    return None if left is None or right is None else _parsed_or_none(parse_condition, f"{left} {relation} {right}")


_T = TypeVar("_T")


def _parsed_or_none(parse: Callable[[str], _T], text: str) -> _T | None:
    """None for what the notation does not take: too long, too deep, or with a name that is none."""
    try:
        return parse(text)
    except DeclarationError:
        return None


def solved(condition: Condition) -> tuple[Expression, int] | None:
    """`8 * batch * seq == 24 * seq` as what must be which number: `batch`, 3; None where it has no such form."""
    if condition.relation != "==" or condition.others:
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
    return expression.xreplace({s: _as_sympy(meaning[s]) for s in symbols_of(expression) if s in meaning})


def _as_sympy(expression: Expression) -> sympy.Basic:
    """As sympy's arithmetic; what it would write in its own words, such as floor(), stays one symbol."""
    names: dict[str, Any] = {name: sympy.Symbol(name, integer=True, positive=True) for name in expression.names}
    if re.search(r"//|[%&|^]|\bmin\(|\bmax\(", expression.text):
        return sympy.Symbol(f"({expression.text})", integer=True, positive=True)
    return sympy.expand(expression.value(names))


_Writer = Callable[[Any, list[str]], str | None]


@lru_cache(maxsize=1 << 16)
def _notation(expression: sympy.Basic, writer_of: Callable[[str], _Writer | None] | None = None) -> str | None:
    """Our notation for a sympy expression, or None; kept, since parts of a size occur over and over."""
    if isinstance(expression, sympy.Symbol):
        return str(expression.name)
    if isinstance(expression, sympy.Integer):
        return str(int(expression))
    parts = [_notation(argument, writer_of) for argument in expression.args]
    texts = [part for part in parts if part is not None]
    write = (writer_of or _WRITERS.get)(type(expression).__name__)
    return write(expression, texts) if write is not None and len(texts) == len(parts) else None


def _power_text(expression: sympy.Basic, texts: list[str]) -> str | None:
    power = expression.args[1]
    if isinstance(power, sympy.Integer) and 1 <= int(power) <= budgets.LARGEST_POWER:
        return " * ".join([f"({texts[0]})"] * int(power))
    return None


def _joined_by(sign: str) -> _Writer:
    return lambda _, texts: f" {sign} ".join(f"({text})" for text in texts)


def _call_text(name: str) -> _Writer:
    return lambda _, texts: f"{name}({', '.join(texts)})"


_WRITERS: dict[str, _Writer] = {
    "Add": lambda expression, _: _sum_text(expression),
    "Mul": _joined_by("*"),
    "Pow": _power_text,
    **dict.fromkeys(("FloorDiv", "CleanDiv"), _joined_by("//")),
    **dict.fromkeys(("Mod", "PythonMod"), _joined_by("%")),
    "BitwiseFn_bitwise_and": _joined_by("&"),
    "BitwiseFn_bitwise_or": _joined_by("|"),
    "BitwiseFn_bitwise_xor": _joined_by("^"),
    "Max": _call_text("max"),
    "Min": _call_text("min"),
}
"""How to write each kind of expression, given its parts."""
_LOOSE_WRITERS: dict[str, _Writer] = {
    **_WRITERS,
    **{name: _joined_by(relation) for name, relation in RELATION_NAMES.items()},
    "Add": lambda expression, _: _sum_text(expression, _loose_writer),
    **dict.fromkeys(("Pow", "PowByNatural", "FloatPow"), _joined_by("**")),
    **dict.fromkeys(("IntTrueDiv", "FloatTrueDiv"), _joined_by("/")),
    "LShift": _joined_by("<<"),
    "RShift": _joined_by(">>"),
    "And": _joined_by("and"),
    "Or": _joined_by("or"),
    "Not": lambda _, texts: f"not ({texts[0]})",
    "Float": lambda expression, _: repr(float(expression)),
    "Abs": _call_text("abs"),
    "ToFloat": _call_text("float"),
    "TruncToInt": _call_text("int"),
}
"""The same with what the notation does not take, for people alone."""


def _loose_writer(name: str) -> _Writer:
    return _LOOSE_WRITERS.get(name) or _call_text(name.rpartition("_")[2])


def in_words(condition: sympy.Basic, meaning: Meaning) -> str:
    """A guard as people read it, in dims; what is no size of an input is a question mark."""
    foreign = sorted((s for s in symbols_of(condition) if s not in meaning), key=str)
    hidden = {symbol: sympy.Symbol(f"unknown_{place}_") for place, symbol in enumerate(foreign)}
    text = _notation(_in_dims(condition, meaning).xreplace(hidden), _loose_writer) or str(condition)
    with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        text = ast.unparse(ast.parse(text, mode="eval"))  # without the brackets that it does not need
    return re.sub(r"\bunknown_\d+_", "?", text)


def _sum_text(expression: sympy.Add, writer_of: Callable[[str], _Writer | None] | None = None) -> str:
    """As people write it: names first, numbers last, `- 3` instead of `+ -3`."""
    terms = sorted(expression.args, key=lambda term: (_is_negative(term), not symbols_of(term)))
    text = ""
    for term in terms:
        negative = _is_negative(term)
        part = f"({_notation(-term if negative else term, writer_of)})"
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


Algebra = Mapping[str, Callable[..., Any]]
"""What each of torch's and sympy's functions computes, by its name."""


def evaluate(
    expression: sympy.Basic,
    columns: Mapping[sympy.Symbol, Any],
    known: Known | None = None,
    algebra: Algebra | None = None,
) -> Any:
    """The expression where its symbols have these values; KeyError for what has none and for unknown functions.

    Parts that occur often are computed once: sizes of a loop that halves them are small as a graph, and vast as a tree.
    With `known`, also those of earlier expressions. With an `algebra` of its own, the values may be anything.
    """
    known = {} if known is None else known
    if expression not in known:
        known[expression] = _new_value_of(expression, columns, known, _FUNCTIONS if algebra is None else algebra)
    return known[expression]


def _new_value_of(expression: sympy.Basic, columns: Mapping[sympy.Symbol, Any], known: Known, algebra: Algebra) -> Any:
    if isinstance(expression, sympy.Symbol):
        return columns[expression]
    if isinstance(expression, sympy.Integer):
        return int(expression)
    if isinstance(expression, sympy.Number):
        return float(expression)
    if expression in (sympy.true, sympy.false):
        return bool(expression)
    parts = [evaluate(part, columns, known, algebra) for part in expression.args]
    return algebra[type(expression).__name__](*parts)


def _piecewise(*pairs: tuple[Any, Any]) -> Any:
    result = pairs[-1][0]
    for value, condition in reversed(pairs[:-1]):
        result = np.where(condition, value, result)
    return result


def _to_whole_numbers(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: np.asarray(function(value)).astype(np.int64)[()]


def _fold_by(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda *parts: reduce(function, parts)


def _fold_exactly(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """OverflowError where 64 bits may not hold the result: arrays would wrap around and say nothing."""

    def fold(*parts: Any) -> Any:
        many = any(isinstance(part, np.ndarray) and part.dtype == np.int64 and part.size for part in parts)
        if many and abs(reduce(function, [_largest_magnitude(part) for part in parts])) >= 2**63:
            raise OverflowError
        return reduce(function, parts)

    return fold


def _largest_magnitude(part: Any) -> Any:
    return max(abs(int(part.max())), abs(int(part.min()))) if isinstance(part, np.ndarray) else abs(part)


_FUNCTIONS: Algebra = {
    "Add": _fold_exactly(operator.add),
    "Mul": _fold_exactly(operator.mul),
    **dict.fromkeys(("Pow", "PowByNatural"), _fold_exactly(operator.pow)),
    "FloatPow": operator.pow,
    "BitwiseFn_bitwise_and": operator.and_,
    "BitwiseFn_bitwise_or": operator.or_,
    "BitwiseFn_bitwise_xor": operator.xor,
    "LShift": lambda value, places: _FUNCTIONS["Mul"](value, _FUNCTIONS["Pow"](2, places)),
    "RShift": lambda value, places: value // _FUNCTIONS["Pow"](2, places),
    "CeilDiv": lambda value, by: -(-value // by),
    "ModularIndexing": lambda value, by, length: value // by % length,
    "Where": np.where,
    **dict.fromkeys(("Mod", "PythonMod"), operator.mod),
    **dict.fromkeys(("FloorDiv", "CleanDiv"), operator.floordiv),
    **dict.fromkeys(("IntTrueDiv", "FloatTrueDiv"), operator.truediv),
    "ToFloat": np.float64,
    "TruncToInt": _to_whole_numbers(np.trunc),
    "FloorToInt": _to_whole_numbers(np.floor),
    "CeilToInt": _to_whole_numbers(np.ceil),
    "RoundToInt": _to_whole_numbers(np.round),
    "OpaqueUnaryFn_sqrt": np.sqrt,
    "Abs": abs,
    "Min": _fold_by(np.minimum),
    "Max": _fold_by(np.maximum),
    **{name: RELATIONS[relation] for name, relation in RELATION_NAMES.items()},
    "And": _fold_by(np.logical_and),
    "Or": _fold_by(np.logical_or),
    "Not": np.logical_not,
    "ExprCondPair": lambda value, condition: (value, condition),
    "Piecewise": _piecewise,
}
"""torch's and sympy's functions of sizes, on arrays."""


# ---- what is surely the larger one


@lru_cache(maxsize=1 << 12)
def bounds_of_rest(expression: sympy.Basic) -> tuple[Any, Any]:
    """The least and the most of a sum whose sizes cancel out but for what rounding adds or takes: of `2*ceil(n/2) - n`
    0 and 1. Infinities where something else is left.
    """
    left, rests = sympy.expand(expression), dict[sympy.Basic, int]()
    while rounded := [one for one in map(_part_and_rest, _parts_of_sum(left)) if one is not None]:
        # the largest first: what it is rounded from may hold the others
        part, plain, rest, divisor = max(rounded, key=lambda one: len(list(sympy.preorder_traversal(one[0]))))
        rests[rest] = divisor - 1
        left = sympy.expand(left.xreplace({part: plain}))
    low = high = left.as_coeff_Add()[0]
    for term in sympy.Add.make_args(left - low):
        coefficient, part = term.as_coeff_Mul()
        if term != 0 and part not in rests:
            return -sympy.oo, sympy.oo
        end = coefficient * rests.get(part, 0)
        low, high = low + min(0, end), high + max(0, end)
    return low, high


def _parts_of_sum(expression: sympy.Basic) -> list[sympy.Basic]:
    return [term.as_coeff_Mul()[1] for term in sympy.Add.make_args(expression)]


def _part_and_rest(part: sympy.Basic) -> tuple[sympy.Basic, sympy.Basic, sympy.Basic, int] | None:
    """A quotient or remainder, the same by way of a rest below the divisor, that rest and the divisor."""
    kind = type(part).__name__
    ratio = part.args[0] if kind == "CeilToInt" and type(part.args[0]).__name__ == "IntTrueDiv" else part
    is_rounded = ratio is not part or kind in ("FloorDiv", "Mod", "PythonMod")
    if not (is_rounded and ratio.args[1].is_Integer and ratio.args[1].is_positive):
        return None
    (value, divisor), rest = ratio.args, sympy.Dummy("rest", integer=True)
    way = rest if "Mod" in kind else (value + (-rest if ratio is part else rest)) / divisor
    return part, way, rest, int(divisor)


def holds(condition: sympy.Basic, meaning: Meaning, sizes: Mapping[str, int]) -> bool | None:
    """Whether a guard holds at these sizes; None where that cannot be told."""
    try:
        values = {s: meaning[s].value(sizes) for s in symbols_of(condition)}
        with raising():
            return bool(evaluate(condition, values))
    except NO_VALUE:
        return None


_OPERATORS = {ast.Add: "Add", ast.Mult: "Mul", ast.FloorDiv: "FloorDiv", ast.Mod: "Mod"} | {
    ast.BitAnd: "BitwiseFn_bitwise_and", ast.BitOr: "BitwiseFn_bitwise_or", ast.BitXor: "BitwiseFn_bitwise_xor",
}  # fmt: skip


@lru_cache(maxsize=4096)
def tree_of(text: str) -> sympy.Basic:
    """An expression of dims as a tree that `evaluate` takes in any algebra; sympy simplifies nothing in it."""
    return _tree_of_node(ast.parse(text, mode="eval").body)


def _tree_of_node(node: ast.expr) -> sympy.Basic:
    match node:
        case ast.Name(id=name):
            return dim_symbol(name)
        case ast.Constant(value=int(value)):
            return sympy.Integer(value)
        case ast.UnaryOp(operand=operand):
            return sympy.Function("Mul")(sympy.Integer(-1), _tree_of_node(operand))
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return sympy.Function("Add")(_tree_of_node(left), sympy.Function("Mul")(-1, _tree_of_node(right)))
        case ast.BinOp(left=left, op=op, right=right):
            return sympy.Function(_OPERATORS[type(op)])(_tree_of_node(left), _tree_of_node(right))
        case ast.Call(func=ast.Name(id=name), args=args):
            return sympy.Function(name.capitalize())(*map(_tree_of_node, args))
    raise AssertionError(ast.dump(node))  # the notation has nothing else


def integers(condition: sympy.Basic) -> set[int]:
    """The whole numbers in a guard."""
    return {abs(int(number)) for number in condition.atoms(sympy.Integer)}
