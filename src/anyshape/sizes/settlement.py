"""Whether a condition on sizes holds at every declared size, or sizes at which it does not.

First a few thousand sizes near the smallest ones are computed, which finds most; then z3 is asked, with its own count
of work as the limit, so that the answer is the same on every machine; where it does not know, or is not installed, up
to a million sizes are computed. What none of them settles stays open.
"""

from __future__ import annotations

import contextlib
import math
import operator
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, reduce
from typing import Any

import numpy as np
import sympy

from anyshape.sizes import budgets, expressions
from anyshape.sizes.expressions import Algebra, Meaning, evaluate, symbols_of, tree_of
from anyshape.sizes.notation import RELATIONS, Condition, Expression, SizeRange, Sizes

Claim = tuple[sympy.Basic, Meaning]
"""A condition on torch's symbols, and what these are in dims."""


@dataclass(frozen=True)
class SizesInQuestion:
    """The sizes in question: ranges, what must hold between them, and sizes among them to start from."""

    ranges: Mapping[str, SizeRange]
    relations: tuple[Condition, ...]
    base: Sizes


@dataclass(frozen=True)
class Answer:
    """What was found out about a claim; neither proved nor any sizes: nothing."""

    is_proved: bool = False
    sizes: tuple[Sizes, ...] = ()
    """Declared sizes at which it does not hold."""


@dataclass(frozen=True, eq=False)
class Question:
    """Whether a claim follows from the declaration and from the claims before it."""

    claim: Claim
    before: Sequence[Claim]
    declared: SizesInQuestion
    avoided: Sequence[Sizes] = ()
    """Sizes of some dims at which nothing is asked."""

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        """What the answer depends on: several files of one model ask the same."""
        claims = tuple(
            (one[0], tuple(str(one[1].get(s)) for s in symbols_of(one[0]))) for one in (self.claim, *self.before)
        )
        sizes = tuple(self.declared.ranges.items()), tuple(self.declared.base.items())
        return claims, sizes, self.declared.relations, tuple(tuple(one.items()) for one in self.avoided)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Question) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def conditions(self) -> list[Claim]:
        """All that holds where it is asked."""
        return [*map(_relation, self.declared.relations), *self.before]


@lru_cache(maxsize=4096)
def find_breaks(question: Question) -> Answer:
    """A proof, or up to two sizes that break the claim."""
    expression, meaning = question.claim
    if not symbols_of(expression) <= set(meaning):
        return Answer()  # it speaks of more than sizes
    if not names_of(question.claim):
        return Answer(is_proved=expression == sympy.true)
    for search in (_find_near, _ask_z3, _find_far):
        answer = search(question)
        if answer.is_proved or answer.sizes:
            return answer
    return Answer()


def names_of(claim: Claim) -> list[str]:
    """The dims that a claim speaks of."""
    expression, meaning = claim
    return sorted({name for symbol in symbols_of(expression) if symbol in meaning for name in meaning[symbol].names})


# ---- by computing it at many sizes at once

Columns = Mapping[str, Any]
"""For each dim its sizes, or one size for all."""
Rows = np.ndarray[Any, np.dtype[np.bool_]]


def _find_near(question: Question) -> Answer:
    declared, dims = question.declared, _dims_together(question)
    most = round(budgets.SIZES_COMPUTED_NEAR ** (1 / len(dims)))
    numbers = expressions.integers(question.claim[0])
    sizes = [_telling_sizes(declared.ranges[dim], declared.base[dim], numbers, most) for dim in dims]
    return _broken_in(question, grid_of(dims, sizes), is_all=_is_all(dims, sizes, declared))


def _find_far(question: Question) -> Answer:
    """All sizes where they are no more than a million; else the smallest."""
    dims = _dims_together(question)
    ranges = [question.declared.ranges[dim] for dim in dims]
    most = int(budgets.SIZES_COMPUTED_FAR ** (1 / len(dims)))
    if all(not one.is_open for one in ranges) and math.prod(map(len, ranges)) <= budgets.SIZES_COMPUTED_FAR:
        most = max(map(len, ranges))
    sizes = [smallest_of(one, most) for one in ranges]
    return _broken_in(question, grid_of(dims, sizes), is_all=_is_all(dims, sizes, question.declared))


def _dims_together(question: Question) -> list[str]:
    """The claim's own dims, with those that must move along, as long as these are few."""
    dims, relations = names_of(question.claim), question.declared.relations
    for relation in (*relations, *relations):
        further = [name for name in relation.names if name not in dims]
        if len(further) < len(relation.names) and len(dims) + len(further) <= 4:
            dims += further
    return dims


def smallest_of(declared: SizeRange, most: int) -> Any:
    """The smallest sizes of a range, as a column."""
    if declared.values is not None:
        return np.asarray(declared.values[:most], dtype=np.int64)
    end = declared.lo + most * declared.step
    return np.arange(declared.lo, end if declared.hi is None else min(end, declared.hi + 1), declared.step)


def _telling_sizes(declared: SizeRange, base: int, numbers: Iterable[int], most: int) -> list[int]:
    """Around the numbers of the claim, the ends and the base; the smallest ones for the rest."""
    known = sorted(number for number in numbers if number <= budgets.LARGEST_SUSPECT)[: most // 4]
    near = [number + step for number in known for step in (0, 1, -1)]
    wanted = [declared.lo, base, base + declared.step, *([] if declared.hi is None else [declared.hi]), *near]
    sizes = dict.fromkeys([*(size for size in wanted if size in declared), *smallest_of(declared, most).tolist()])
    return list(sizes)[:most]


def grid_of(dims: Iterable[str], sizes: Iterable[Any]) -> Columns:
    """All of them with each other."""
    axes = np.meshgrid(*(np.asarray(one, dtype=np.int64) for one in sizes), indexing="ij")
    return {dim: axis.ravel() for dim, axis in zip(dims, axes, strict=True)}


def joined_columns(rows: Sequence[Columns]) -> dict[str, Any]:
    """Several sets of sizes, one after the other; in each, a dim may have one size for all."""
    lengths = [max(np.size(column) for column in row.values()) for row in rows]
    return {
        dim: np.concatenate([np.broadcast_to(row[dim], length) for row, length in zip(rows, lengths, strict=True)])
        for dim in rows[0]
    }


def _is_all(dims: Sequence[str], sizes: Sequence[Sequence[int]], declared: SizesInQuestion) -> bool:
    ranges = [declared.ranges[dim] for dim in dims]
    return all(not one.is_open and len(one) == len(some) for one, some in zip(ranges, sizes, strict=True))


def _broken_in(question: Question, columns: Columns, *, is_all: bool = False) -> Answer:
    """The telling ones of the sizes at which the claim does not hold; a proof where these are all there are."""
    base = question.declared.base
    rest = {dim: size for dim, size in base.items() if dim not in columns}
    try:
        broken = ~_truth(question.claim, columns)
        columns = {dim: column[broken] for dim, column in columns.items()}
        kept = np.ones(np.count_nonzero(broken), dtype=np.bool_)
        for holds in question.conditions if kept.any() else ():
            kept &= _truth(holds, {**rest, **columns})
    except expressions.NO_VALUE:
        return Answer()
    for avoided in question.avoided:
        here = {**rest, **columns}
        kept &= ~reduce(np.logical_and, [here[dim] == size for dim, size in avoided.items()], np.True_)
    # a dim that is not among these stays at the base, so that nothing is proved where it matters
    if is_all and not kept.any() and (not broken.any() or _depends_on(question) <= set(columns)):
        return Answer(is_proved=True)
    places = telling_rows(columns, kept, base)
    return Answer(sizes=tuple({d: int(columns[d][at]) if d in columns else rest[d] for d in base} for at in places))


def _depends_on(question: Question) -> set[str]:
    return {name for holds in question.conditions for name in names_of(holds)}


def telling_rows(columns: Columns, kept: Rows, base: Sizes) -> list[int]:
    """The smallest one and the nearest to the base; where all dims are at least 3, if may be, since 1 hides bugs."""
    places = np.flatnonzero(kept)
    if not len(places):
        return []
    total = sum(column[places].astype(np.float64) for column in columns.values())
    away = sum(abs(column[places].astype(np.float64) - base[dim]) for dim, column in columns.items())
    hides = np.min([column[places] for column in columns.values()], axis=0) < 3
    first, *others = np.lexsort((total, hides))[:2]
    second = next((row for row in np.lexsort((total, away, hides))[:2] if row != first), None)
    chosen = [first, *others] if second is None else [first, second]
    return [int(places[row]) for row in chosen]


def _relation(condition: Condition) -> Claim:
    names = {name: expressions.dim_symbol(name) for name in condition.names}
    left, right = tree_of(condition.left.text), tree_of(condition.right.text)
    relation = sympy.Function(_NAMES_OF_RELATIONS[condition.relation])(left, right)
    return relation, {symbol: Expression(name) for name, symbol in names.items()}


_NAMES_OF_RELATIONS = {relation: name for name, relation in expressions.RELATION_NAMES.items()}


def _truth(claim: Claim, columns: Columns) -> Rows:
    """At which of these sizes a claim holds; where Python divides by zero there is no call, and all holds."""
    try:
        return _computed_truth(claim, columns)
    except OverflowError:
        length = max((np.size(column) for column in columns.values()), default=0)
        if length > budgets.SIZES_COMPUTED_NEAR:
            raise
        # Python's own numbers have no end
        return _computed_truth(claim, {dim: np.asarray(column, dtype=object) for dim, column in columns.items()})


def truths(claim: Claim, sizes: Sequence[Sizes]) -> list[bool | None]:
    """Whether a claim holds at each of these sizes; None where it cannot be told."""
    if sizes:
        columns = {dim: np.asarray([one[dim] for one in sizes], dtype=np.int64) for dim in sizes[0]}
        with contextlib.suppress(*expressions.NO_VALUE):
            return [bool(holds) for holds in _truth(claim, columns)]
    return [expressions.holds(*claim, one) for one in sizes]


def _computed_truth(claim: Claim, columns: Columns) -> Rows:
    expression, meaning = claim
    of_dims = {expressions.dim_symbol(dim): column for dim, column in columns.items()}
    known: dict[sympy.Basic, Any] = {}
    with np.errstate(divide="ignore", invalid="ignore", over="raise"):
        values = {symbol: evaluate(tree_of(meaning[symbol].text), of_dims) for symbol in symbols_of(expression)}
        divided = [evaluate(divisor, values, known) != 0 for divisor in _divisors(expression)]
        holds = evaluate(expression, values, known) | ~reduce(np.logical_and, divided, np.True_)
    shape = np.broadcast_shapes(*(np.shape(column) for column in columns.values()))
    return np.broadcast_to(np.asarray(holds, dtype=np.bool_), shape)


_DIVISIONS = {"FloorDiv", "CleanDiv", "CeilDiv", "Mod", "PythonMod", "ModularIndexing", "IntTrueDiv", "FloatTrueDiv"}


def _divisors(expression: sympy.Basic) -> list[sympy.Basic]:
    """What is divided by; each part is visited once: a vast tree may be a small graph."""
    seen, left = set(), [expression]
    while left:
        part = left.pop()
        if part not in seen:
            seen.add(part)
            left += part.args
    return [part.args[1] for part in seen if type(part).__name__ in _DIVISIONS and symbols_of(part.args[1])]


# ---- by z3

_ONE_AT_A_TIME = threading.Lock()


def _ask_z3(question: Question) -> Answer:
    """Proved where z3 finds no size that breaks it; what it finds is computed again before it counts."""
    try:
        import z3
    except ImportError:
        return Answer()
    with _ONE_AT_A_TIME:
        # a context of its own, or the questions before this one would change which sizes are found
        solver = _Solver(z3, z3.Context(), question.declared)
        try:
            solver.add_broken(question)
        except _UNTRANSLATABLE:
            return Answer()
        verdict = solver.check()
        if verdict == z3.unsat:
            return Answer(is_proved=True)
        found = solver.small_sizes(names_of(question.claim)) if verdict == z3.sat else []
    return Answer(sizes=tuple(sizes for sizes in found if _is_broken_at(question, sizes)))


def _is_broken_at(question: Question, sizes: Sizes) -> bool:
    declared = question.declared
    if not all(size in declared.ranges[dim] and size <= _farthest(declared, dim) for dim, size in sizes.items()):
        return False
    is_broken = expressions.holds(*question.claim, sizes) is False
    return is_broken and all(truths(holds, [sizes])[0] for holds in question.conditions)


def _farthest(declared: SizesInQuestion, dim: str) -> int:
    """An open range has no end, but no call is as large as this."""
    high = declared.ranges[dim].hi
    return budgets.LARGEST_SUSPECT if high is None else high


_UNTRANSLATABLE = (*expressions.NO_VALUE, AttributeError, RecursionError)


class _Solver:
    """The declared sizes as numbers of z3."""

    def __init__(self, z3: Any, context: Any, declared: SizesInQuestion) -> None:
        self._z3, self._declared = z3, declared
        self._solver = z3.Solver(ctx=context)
        self._solver.set("rlimit", budgets.WORK_OF_Z3)
        self.check = self._solver.check
        self._known: dict[sympy.Basic, Any] = {}
        self._dims = {dim: z3.Int(dim, context) for dim in declared.ranges}
        self._algebra = _algebra_of(z3, context, self._solver.add)
        for dim, size in self._dims.items():
            self._bound(size, declared.ranges[dim])

    def add_broken(self, question: Question) -> None:
        """Asks for sizes at which the claim does not hold, and all does that comes before it."""
        self._solver.add(self._z3.Not(self._truth(question.claim)))
        for holds in question.conditions:
            with contextlib.suppress(*_UNTRANSLATABLE):
                # without it, more sizes are asked about than there are: a proof is one all the same
                self._solver.add(self._truth(holds))
        for sizes in question.avoided:
            self._solver.add(self._differ(sizes, sizes))

    def _bound(self, size: Any, declared: SizeRange) -> None:
        if declared.values is not None:
            self._solver.add(self._z3.Or([size == value for value in declared.values]))
            return
        self._solver.add(size >= declared.lo)
        if declared.hi is not None:
            self._solver.add(size <= declared.hi)
        if declared.step > 1:
            self._solver.add((size - declared.lo) % declared.step == 0)

    def _truth(self, claim: Claim) -> Any:
        expression, meaning = claim
        dims = {expressions.dim_symbol(dim): size for dim, size in self._dims.items()}
        values = {
            s: evaluate(tree_of(meaning[s].text), dims, self._known, self._algebra) for s in symbols_of(expression)
        }
        for divisor in _divisors(expression):
            self._solver.add(evaluate(divisor, values, self._known, self._algebra) != 0)
        return evaluate(expression, values, self._known, self._algebra)

    def _differ(self, dims: Iterable[str], sizes: Sizes) -> Any:
        return self._z3.Or([self._dims[dim] != sizes[dim] for dim in dims])

    def small_sizes(self, own: Sequence[str]) -> list[Sizes]:
        """A small answer to what was found possible, and another; if may be, the rest at the base, and none below 3."""
        rest = [size == self._declared.base[dim] for dim, size in self._dims.items() if dim not in own]
        large = [self._dims[dim] >= 3 for dim in own]
        found: list[Sizes] = []
        for _ in range(2):
            wishes = next((more for more in ([*rest, *large], rest, large, []) if self._is_possible(*more)), None)
            if wishes is None:
                break
            found.append(self._smallest(*wishes))
            self._solver.add(self._differ(own, found[-1]))
        return found

    def _is_possible(self, *more: Any) -> bool:
        return bool(self._solver.check(*more) == self._z3.sat)

    def _smallest(self, *wishes: Any) -> Sizes:
        """The sum of all dims is halved for as long as z3 knows."""
        best, low, total = self._sizes_found(), 0, self._z3.Sum(list(self._dims.values()))
        while low < (high := sum(best.values())):
            middle = (low + high) // 2
            verdict = self._solver.check(*wishes, total <= middle)
            if verdict == self._z3.unknown:
                break
            if verdict == self._z3.sat:
                best = self._sizes_found()
            else:
                low = middle + 1
        return best

    def _sizes_found(self) -> Sizes:
        model = self._solver.model()
        return {dim: model.eval(size, model_completion=True).as_long() for dim, size in self._dims.items()}


class _Floats:
    """A float is a real number within a rounding of the exact one, so that what holds for all of these holds."""

    def __init__(self, z3: Any, context: Any, add: Callable[[Any], None]) -> None:
        self._z3, self._context, self._add = z3, context, add

    def real(self, value: Any) -> Any:
        if isinstance(value, float):
            fraction = Fraction(value)
            return self._z3.Q(fraction.numerator, fraction.denominator, self._context)
        return self._z3.ToReal(value) if self._z3.is_int(value) else value

    def rounded(self, exact: Any) -> Any:
        near = self._z3.FreshReal("float", self._context)
        slack = self._z3.If(exact >= 0, exact, -exact) * self._z3.Q(1, 2**53, self._context)
        self._add(near >= exact - slack)
        self._add(near <= exact + slack)
        return near

    def fold(self, function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
        def computed(*parts: Any) -> Any:
            if not any(isinstance(part, float) or self._z3.is_real(part) for part in parts):
                return reduce(function, parts)
            return reduce(lambda left, right: self.rounded(function(self.real(left), self.real(right))), parts)

        return computed

    def divided(self, value: Any, by: Any) -> Any:
        exact = self.real(value) / self.real(by)
        is_power_of_two = isinstance(by, (int, float)) and math.frexp(by)[0] == 0.5
        return exact if is_power_of_two else self.rounded(exact)


def _bits_of(value: Any, mask: Any) -> Any:
    """`value & mask`, where one of them is a number."""
    if not isinstance(mask, int):
        value, mask = mask, value
    if mask < 0:
        return value - _bits_of(value, ~mask)
    return sum(value / 2**place % 2 * 2**place for place in range(mask.bit_length()) if mask >> place & 1)


def _power(base: Any, exponent: Any) -> Any:
    if not isinstance(exponent, int) or not 0 <= exponent <= budgets.LARGEST_POWER_WRITTEN:
        raise KeyError(exponent)
    return math.prod([base] * exponent)


def _algebra_of(z3: Any, context: Any, add: Callable[[Any], None]) -> Algebra:
    """Whole numbers are z3's own, whose division goes down for positive divisors alone."""
    floats = _Floats(z3, context, add)

    def floor_division(value: Any, by: Any) -> Any:
        if isinstance(by, int):
            return value / by if by > 0 else -value / -by
        return z3.If(by > 0, value / by, -value / -by)

    def modulo(value: Any, by: Any) -> Any:
        return value % by if isinstance(by, int) and by > 0 else value - floor_division(value, by) * by

    return {
        "Add": floats.fold(operator.add),
        "Mul": floats.fold(operator.mul),
        **dict.fromkeys(("Pow", "PowByNatural"), _power),
        **dict.fromkeys(("Mod", "PythonMod"), modulo),
        **dict.fromkeys(("FloorDiv", "CleanDiv"), floor_division),
        **dict.fromkeys(("IntTrueDiv", "FloatTrueDiv"), floats.divided),
        "CeilDiv": lambda value, by: -floor_division(-value, by),
        "ModularIndexing": lambda value, by, length: modulo(floor_division(value, by), length),
        "BitwiseFn_bitwise_and": _bits_of,
        "BitwiseFn_bitwise_or": lambda a, b: a + b - _bits_of(a, b),
        "BitwiseFn_bitwise_xor": lambda a, b: a + b - 2 * _bits_of(a, b),
        "LShift": lambda value, places: value * _power(2, places),
        "RShift": lambda value, places: floor_division(value, _power(2, places)),
        "ToFloat": floats.real,
        "TruncToInt": lambda value: z3.If(value >= 0, z3.ToInt(value), -z3.ToInt(-value)),
        "FloorToInt": z3.ToInt,
        "CeilToInt": lambda value: -z3.ToInt(-value),
        "Abs": lambda value: z3.If(value >= 0, value, -value),
        "Min": lambda *parts: reduce(lambda a, b: z3.If(a <= b, a, b), parts),
        "Max": lambda *parts: reduce(lambda a, b: z3.If(a >= b, a, b), parts),
        **{name: RELATIONS[relation] for name, relation in expressions.RELATION_NAMES.items()},
        "And": lambda *parts: z3.And(*parts, context),
        "Or": lambda *parts: z3.Or(*parts, context),
        "Not": lambda part: z3.Not(part, context),
        "Where": z3.If,
    }
