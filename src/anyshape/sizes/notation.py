"""The notation: `"batch seq 10"` for axes, `"1..512 step 8"` for sizes, `past+seq` for expressions.

Text becomes values here and nowhere else; nothing in it is ever executed.
"""

from __future__ import annotations

import ast
import bisect
import difflib
import functools
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import EllipsisType

from anyshape.errors import DeclarationError
from anyshape.sizes import budgets

Sizes = Mapping[str, int]
"""The size of each dim."""

# ---- an expression of dims

Evaluate = Callable[[Sizes], int]

OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
FUNCTIONS: dict[str, Callable[..., int]] = {"min": min, "max": max}


@dataclass(frozen=True)
class Expression:
    """A size written with dims: `batch`, `past + seq`, `n // 2 + 1`, `min(seq, 50)`."""

    text: str

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """The dims in it, in order of appearance."""
        found = [n for n in ast.walk(self._tree) if isinstance(n, ast.Name) and n.id not in FUNCTIONS]
        return tuple(dict.fromkeys(n.id for n in sorted(found, key=lambda n: n.col_offset)))

    @property
    def is_name(self) -> bool:
        """True for a bare dim such as `batch`."""
        return isinstance(self._tree, ast.Name)

    def value(self, sizes: Sizes) -> int:
        """Its size where the dims have these sizes; ZeroDivisionError where it has none."""
        return evaluator(self.text)(sizes)

    def value_or_none(self, sizes: Sizes) -> int | None:
        """The same, None where it divides by zero."""
        try:
            return self.value(sizes)
        except ZeroDivisionError:
            return None

    @functools.cached_property
    def _tree(self) -> ast.expr:
        return ast.parse(self.text, mode="eval").body

    def __str__(self) -> str:
        return self.text


def parse_expression(text: str) -> Expression:
    """`past+seq` -> Expression("past + seq"); a sentence where it is none."""
    reason = f"`{text}` is not a size: use names, whole numbers, + - * // % and min(), max()"
    if len(text) > budgets.LONGEST_EXPRESSION:
        raise DeclarationError(
            f"an expression of {len(text)} characters is too long: at most {budgets.LONGEST_EXPRESSION}"
        )
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise DeclarationError(reason) from None
    if _is_deep(tree) or not _is_allowed(tree):
        raise DeclarationError(reason)
    return Expression(ast.unparse(tree))


def _is_deep(tree: ast.AST) -> bool:
    level = [tree]
    for _ in range(budgets.DEEPEST_EXPRESSION):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return bool(level)


def _is_allowed(node: ast.expr) -> bool:
    match node:
        case ast.Name():
            return node.id not in FUNCTIONS
        case ast.Constant():
            return type(node.value) is int
        case ast.UnaryOp(op=ast.USub()):
            return _is_allowed(node.operand)
        case ast.BinOp():
            return type(node.op) in OPERATORS and _is_allowed(node.left) and _is_allowed(node.right)
        case ast.Call(func=ast.Name(id=name), keywords=[]):
            return name in FUNCTIONS and len(node.args) >= 2 and all(map(_is_allowed, node.args))
    return False


@functools.lru_cache(maxsize=4096)
def evaluator(text: str) -> Evaluate:
    """The size of an expression from those of its dims, as a function that is made once for many calls."""
    return _evaluator_of(ast.parse(text, mode="eval").body)


def _evaluator_of(node: ast.expr) -> Evaluate:
    match node:
        case ast.Name(id=name):
            return operator.itemgetter(name)
        case ast.Constant(value=int(number)):
            return lambda _: number
        case ast.UnaryOp(operand=operand):
            inner = _evaluator_of(operand)
            return lambda sizes: -inner(sizes)
        case ast.BinOp(left=left, op=op, right=right):
            compute, first, second = OPERATORS[type(op)], _evaluator_of(left), _evaluator_of(right)
            return lambda sizes: compute(first(sizes), second(sizes))
        case ast.Call(func=ast.Name(id=name), args=args):
            choose, parts = FUNCTIONS[name], [_evaluator_of(part) for part in args]
            return lambda sizes: choose(part(sizes) for part in parts)
    raise AssertionError(ast.dump(node))  # `parse_expression` lets nothing else through


def solve_for(dim: str, evaluate: Evaluate, size: int, known: Sizes) -> int | None:
    """The one size of `dim` that gives this size; None where there is none, or several, or it is not found.

    Expressions of sizes grow with them, so halving finds it; `n // 2` = 3 has two answers and gets none.
    """
    trial = dict(known)

    def at(candidate: int) -> int:
        trial[dim] = candidate
        return evaluate(trial)

    try:
        found = bisect.bisect_left(range(budgets.LARGEST_SIZE), size, key=at)
        return found if at(found) == size and at(found + 1) != size else None
    except ZeroDivisionError:
        return None


# ---- a relation between sizes

RELATIONS: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "!=": operator.ne,
}


@dataclass(frozen=True)
class Condition:
    """A relation between sizes: `seq <= 512`, `height % 32 == 0`, `b2 == b`, `b2 == b or b == 1`."""

    left: Expression
    relation: str
    right: Expression
    others: tuple[Condition, ...] = ()
    """Relations of which each will do as well."""

    @property
    def parts(self) -> tuple[Condition, ...]:
        """The relations of which one must hold."""
        return (Condition(self.left, self.relation, self.right), *self.others)

    @property
    def names(self) -> tuple[str, ...]:
        others = (name for other in self.others for name in other.names)
        return tuple(dict.fromkeys((*self.left.names, *self.right.names, *others)))

    def holds(self, sizes: Sizes) -> bool:
        try:
            if RELATIONS[self.relation](self.left.value(sizes), self.right.value(sizes)):
                return True
        except ZeroDivisionError:
            pass
        return any(other.holds(sizes) for other in self.others)

    def __str__(self) -> str:
        return " or ".join((f"{self.left} {self.relation} {self.right}", *map(str, self.others)))


def any_of(conditions: Sequence[Condition]) -> Condition:
    """The condition that one of these holds."""
    first, *others = (part for condition in conditions for part in condition.parts)
    return Condition(first.left, first.relation, first.right, tuple(others))


def parse_condition(text: str) -> Condition:
    """`seq <= 512` -> Condition."""
    conditions = parse_conditions(text)
    if len(conditions) != 1:
        raise DeclarationError(_not_a_condition(text))
    return conditions[0]


def parse_conditions(text: str) -> tuple[Condition, ...]:
    """As Python reads it: `1 <= src <= tgt` is two conditions, `b == a or b == 1` one."""
    alternatives = re.split(r"\bor\b", text)
    if len(alternatives) > 1:
        return (any_of([parse_condition(one) for one in alternatives]),)
    parts = [part.strip() for part in re.split(r"(==|<=|>=|!=|<|>)", text)]
    if len(parts) < 3 or not all(parts):
        raise DeclarationError(_not_a_condition(text))
    sizes = [parse_expression(part) for part in parts[::2]]
    return tuple(Condition(*row) for row in zip(sizes, parts[1::2], sizes[1:], strict=False))


def _not_a_condition(text: str) -> str:
    return f"`{text}` is not a condition: write two sizes and one of {', '.join(RELATIONS)}"


# ---- one input's axes

Axis = Expression | int | str | None
"""One axis as written: an expression (dynamic), a number (static, checked), `_` (static), None (dynamic, unnamed)."""
STATIC = "_"


def parse_axes(declared: object, *, where: str) -> tuple[Axis | EllipsisType, ...] | dict[int, Axis]:
    """The axes of one input: from text, a list or tuple of entries, or `{axis: entry}`."""
    if isinstance(declared, str):
        return tuple(_parse_entry(part, where=where) for part in _entries_of(declared))
    if isinstance(declared, Mapping):
        return {_axis_number(k, where=where): _parse_axis(v, where=where) for k, v in declared.items()}
    if isinstance(declared, Sequence):
        return tuple(_parse_entry(part, where=where) for part in declared)
    raise DeclarationError(
        f"`{where}` is declared {declared!r}, a {type(declared).__name__}: "
        'write its axes as text ("batch seq 10"), as a list, or as {axis: name}'
    )


def _entries_of(text: str) -> list[str]:
    """On commas where there are any outside brackets, else on spaces that do not surround an operator."""
    parts = _split_outside_brackets(text, ",")
    if len(parts) == 1:
        parts = _split_outside_brackets(re.sub(r"\s*(//|[-+*%])\s*", r"\1", text), " \t\n")
    return [part.strip() for part in parts if part.strip()]


def _split_outside_brackets(text: str, separators: str) -> list[str]:
    parts, depth = [""], 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if character in separators and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _parse_entry(entry: object, *, where: str) -> Axis | EllipsisType:
    text = entry.strip() if isinstance(entry, str) else None
    if entry is Ellipsis or text == "...":
        return Ellipsis
    if entry is None or text == "?":
        return None
    if isinstance(entry, bool) or not isinstance(entry, (str, int, Expression)):
        raise DeclarationError(f"`{where}` holds {entry!r}, which is neither a name, a number nor an expression")
    if text is None or text == STATIC:
        return text or entry
    return int(text) if text.isdecimal() else parse_expression(text)


def _parse_axis(entry: object, *, where: str) -> Axis:
    parsed = _parse_entry(entry, where=where)
    if parsed is Ellipsis:
        raise DeclarationError(f"`{where}` has `...` on a numbered axis: an axis that is not listed is static anyway")
    return parsed


def _axis_number(key: object, *, where: str) -> int:
    if isinstance(key, bool) or not isinstance(key, int):
        raise DeclarationError(f"`{where}` has the axis {key!r}: an axis is a whole number, counted from 0")
    return key


# ---- the sizes a dim may take


@dataclass(frozen=True)
class SizeRange:
    """Which sizes a dim may take: from `lo` to `hi` (None: open) in steps, or the listed ones alone."""

    lo: int = 1
    hi: int | None = None
    step: int = 1
    values: tuple[int, ...] | None = None

    def __contains__(self, size: int) -> bool:
        if self.values is not None:
            return size in self.values
        return self.lo <= size and (self.hi is None or size <= self.hi) and (size - self.lo) % self.step == 0

    def __len__(self) -> int:
        """How many sizes; only for a closed range."""
        if self.values is not None:
            return len(self.values)
        assert self.hi is not None, "an open range has no length"
        return (self.hi - self.lo) // self.step + 1

    @property
    def is_open(self) -> bool:
        return self.values is None and self.hi is None

    def nearest(self, size: int) -> int:
        """The member closest to a size; of two, the smaller."""
        if self.values is not None:
            return min(self.values, key=lambda v: (abs(v - size), v))
        steps = max(0, -(-(2 * (size - self.lo) - self.step) // (2 * self.step)))  # rounded, halves down
        if self.hi is not None:
            steps = min(steps, (self.hi - self.lo) // self.step)
        return self.lo + steps * self.step

    def up_to(self, highest: int) -> SizeRange:
        """The same range, closed at `highest` or below; its smallest size stays in any case."""
        if self.values is not None:
            kept = tuple(v for v in self.values if v <= highest)
            return SizeRange(values=kept or self.values[:1], lo=self.lo, hi=(kept or self.values[:1])[-1])
        top = highest if self.hi is None else min(self.hi, highest)
        steps = max(0, (top - self.lo) // self.step)
        return SizeRange(self.lo, self.lo + steps * self.step, self.step)

    def __str__(self) -> str:
        if self.values is not None:
            return "{" + ", ".join(map(str, self.values)) + "}"
        text = f"{self.lo}.." if self.hi is None else f"{self.lo}..{self.hi}"
        return text if self.step == 1 else f"{text} step {self.step}"


_RANGE = re.compile(r"\s*(\d*)\s*\.\.\s*(\d*)\s*(?:step\s+(\d+)\s*)?")


def parse_sizes(declared: object, *, dim: str) -> SizeRange:
    """`"1..512"`, `"8.."`, `"32..1024 step 32"`, a range, a list (these only), a tuple (lo, hi), an int."""
    match declared:
        case SizeRange():
            return declared
        case bool():
            pass
        case int():
            return _range_of_values([declared], dim=dim)
        case range():
            if len(declared) and declared.step > 0:
                return _range_of_ends(declared.start, declared[-1], declared.step, dim=dim)
        case (int(), int() | None) if isinstance(declared, tuple):
            return _range_of_ends(declared[0], declared[1], 1, dim=dim)
        case list() | set() | frozenset() if declared and all(type(v) is int for v in declared):
            return _range_of_values(declared, dim=dim)
        case str():
            return _range_of_text(declared, dim=dim)
    raise DeclarationError(
        f'the sizes of `{dim}` are {declared!r}: write "1..512", "8..", "32..1024 step 32", '
        "a range, a list, a tuple (lo, hi) or a number"
    )


_HUGE_NUMBER = re.compile(rf"\d{{{budgets.LONGEST_OFFSET + 1}}}")


def _range_of_text(text: str, *, dim: str) -> SizeRange:
    if _HUGE_NUMBER.search(text):
        raise DeclarationError(f"the sizes of `{dim}` hold a number of more than {budgets.LONGEST_OFFSET} digits")
    if match := _RANGE.fullmatch(text):
        lo, hi, step = match.groups()
        return _range_of_ends(int(lo or 1), int(hi) if hi else None, int(step or 1), dim=dim)
    parts = text.strip("{}[] ").replace(",", " ").split()
    if parts and all(p.isdecimal() for p in parts):
        return _range_of_values([int(p) for p in parts], dim=dim)
    raise DeclarationError(
        f"the sizes of `{dim}` are `{text}`: write `1..512`, `8..`, `32..1024 step 32` or numbers `1, 2, 4`"
    )


def _range_of_ends(lo: int, hi: int | None, step: int, *, dim: str) -> SizeRange:
    if lo < 0 or step < 1 or (hi is not None and hi < lo):
        raise DeclarationError(f"the sizes of `{dim}` from {lo} to {hi} in steps of {step} hold no size")
    return SizeRange(lo, None if hi is None else lo + (hi - lo) // step * step, step)


def _range_of_values(values: Iterable[int], *, dim: str) -> SizeRange:
    kept = tuple(sorted(set(values)))
    if kept[0] < 0:
        raise DeclarationError(f"the sizes of `{dim}` hold {kept[0]}: a size is not negative")
    return SizeRange(lo=kept[0], hi=kept[-1], values=kept)


# ---- one input on the command line


@dataclass(frozen=True)
class InputText:
    """`tokens: int64[batch, seq] < 1000` taken apart."""

    name: str
    dtype: str
    axes: str
    below: int | None


_INPUT = re.compile(r"\s*([\w.*]+)\s*:\s*(\w+)?\s*\[([^\]]*)\]\s*(?:<\s*(\d+)\s*)?")


def parse_input(text: str) -> InputText:
    """One `--input` of the command line."""
    match = _INPUT.fullmatch(text)
    if match is None:
        raise DeclarationError(
            f"`{text}` is not an input: write `name: dtype[axes]`, such as `tokens: int64[batch, seq] < 1000`"
        )
    name, dtype, axes, below = match.groups()
    return InputText(name, dtype or "float32", axes, int(below) if below else None)


def listed(names: Iterable[str]) -> str:
    """`` `ids`, `mask` ``."""
    return ", ".join(f"`{name}`" for name in names)


def unknown_name(argument: str, wrong: str, known: Iterable[str], *, of: str = "inputs") -> DeclarationError:
    """An argument that names what is not among the inputs, or not among the inputs and outputs."""
    known = list(dict.fromkeys(known))
    return DeclarationError(
        f"`{argument}` names `{wrong}`, but the {of} are {listed(known)}{did_you_mean(wrong, known)}"
    )


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """`; did you mean `seq`?`, or nothing."""
    close = difflib.get_close_matches(wrong, list(known), n=1, cutoff=0.5)
    return f"; did you mean `{close[0]}`?" if close else ""
