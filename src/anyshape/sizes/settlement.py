"""Whether a condition on sizes holds at every declared size, or sizes at which it does not.

First a few thousand sizes near the smallest ones are computed, which finds most; then z3 is asked, with its own count
of work as the limit, so that the answer is the same on every machine; where it does not know, or is not installed, up
to a million sizes are computed. What none of them settles stays open.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from typing import Any

import numpy as np
import sympy

from anyshape.sizes import budgets, expressions
from anyshape.sizes.columns import Columns, Rows, grid_of, smallest_of, telling_rows
from anyshape.sizes.expressions import Meaning, evaluate, symbols_of, tree_of
from anyshape.sizes.notation import Condition, Expression, SizeRange, Sizes
from anyshape.sizes.z3_algebra import algebra_of

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


def _telling_sizes(declared: SizeRange, base: int, numbers: Iterable[int], most: int) -> list[int]:
    """Around the numbers of the claim, the ends and the base; the smallest ones for the rest."""
    known = sorted(number for number in numbers if number <= budgets.LARGEST_SUSPECT)[: most // 4]
    near = [number + step for number in known for step in (0, 1, -1)]
    wanted = [declared.lo, base, base + declared.step, *([] if declared.hi is None else [declared.hi]), *near]
    sizes = dict.fromkeys([*(size for size in wanted if size in declared), *smallest_of(declared, most).tolist()])
    return list(sizes)[:most]


def _is_all(dims: Sequence[str], sizes: Sequence[Sequence[int]], declared: SizesInQuestion) -> bool:
    ranges = [declared.ranges[dim] for dim in dims]
    return all(not one.is_open and len(one) == len(some) for one, some in zip(ranges, sizes, strict=True))


def _broken_in(question: Question, columns: Columns, *, is_all: bool = False) -> Answer:
    """The telling ones of the sizes at which the claim does not hold; a proof where these are all there are."""
    base = question.declared.base
    rest = {dim: size for dim, size in base.items() if dim not in columns}
    try:
        broken = ~_truth(question.claim, columns)
        columns, count = _rows_where(broken, columns)
        for holds in question.conditions:
            if count:  # each is computed where those before it hold, and nowhere else
                columns, count = _rows_where(_truth(holds, {**rest, **columns}), columns)
    except expressions.NO_VALUE:
        return Answer()
    kept = np.ones(count, dtype=np.bool_)
    for avoided in question.avoided:
        here = {**rest, **columns}
        kept &= ~reduce(np.logical_and, [here[dim] == size for dim, size in avoided.items()], np.True_)
    # a dim that is not among these stays at the base, so that nothing is proved where it matters
    if is_all and not kept.any() and (not broken.any() or _depends_on(question) <= set(columns)):
        return Answer(is_proved=True)
    places = telling_rows(columns, kept, base)
    return Answer(sizes=tuple({d: int(columns[d][at]) if d in columns else rest[d] for d in base} for at in places))


def _rows_where(truth: Rows, columns: Columns) -> tuple[dict[str, Rows], int]:
    """The rows at which something is true, and how many they are."""
    return {dim: column[truth] for dim, column in columns.items()}, int(np.count_nonzero(truth))


def _depends_on(question: Question) -> set[str]:
    return {name for holds in question.conditions for name in names_of(holds)}


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
        self._algebra = algebra_of(z3, context, self._solver.add)
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
