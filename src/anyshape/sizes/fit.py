"""The formula behind numbers that were seen at several sizes: fitted exactly, the simplest first, and checked on all.

Numbers stand in columns, one for each observation. Three questions are asked of them, each with forms of its own and
another idea of what is simple:

- the size of an output axis, from runs of the model: the expression of dims that a user would write (`fit_outputs`);
- a whole number that static exports left behind: any expression that gives it, however composed (`whole_number`);
- how sizes of several calls hang together: every way to compute one from the others (`formulas`).

The arithmetic behind them is the same, and so is the rule that nothing is believed which misses an observation.
"""

from __future__ import annotations

import enum
import functools
import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

import sympy

from anyshape.sizes import budgets
from anyshape.sizes.expressions import Size, evaluated, number
from anyshape.sizes.notation import Expression, SizeRange, parse_expression

Column = tuple[int, ...]
"""One number per observation."""

_FEWEST_POINTS = 3
"""Two points make a line through anything."""


# ---- the arithmetic: exact, over all observations


def offset_of(column: Column, computed: Iterable[int]) -> int | None:
    """What must be added to all computed numbers, where that is one number."""
    differences = {n - other for n, other in zip(column, computed, strict=True)}
    return differences.pop() if len(differences) == 1 else None


def ratio_of(column: Column, other: Column) -> Fraction | None:
    """How many times another column this one is, where that is one number."""
    if not other[0]:
        return None
    ratio = Fraction(column[0], other[0])
    return ratio if all(n == ratio * m for n, m in zip(column, other, strict=True)) else None


def line_through(column: Column, other: Column) -> tuple[Fraction, Fraction] | None:
    """Slope and start of the line on which a column follows another; None where there is none, or many."""
    low, high = other.index(min(other)), other.index(max(other))
    if other[low] == other[high]:
        return None
    slope = Fraction(column[high] - column[low], other[high] - other[low])
    start = column[low] - slope * other[low]
    return (slope, start) if all(n == slope * m + start for n, m in zip(column, other, strict=True)) else None


def whole_line(column: Column, other: Column) -> tuple[int, int] | None:
    """The same where its slope is a whole number, and so its start."""
    line = line_through(column, other)
    return None if line is None or line[0].denominator != 1 else (int(line[0]), int(line[1]))


def quotient_offsets(column: Column, other: Column, divisor: int) -> range:
    """Every `a` with which `(other + a) // divisor` is the column."""
    # a quotient is at least its number, and less than one more
    least = max(divisor * n - m for n, m in zip(column, other, strict=True))
    most = min(divisor * n - m for n, m in zip(column, other, strict=True)) + divisor - 1
    return range(least, most + 1)


_T = TypeVar("_T")


def holding(candidates: Iterable[_T], column: Column, value: Callable[[_T, int], int | None]) -> Iterator[_T]:
    """The candidates that give every number of a column; `value` computes one at the observation with an index."""
    for candidate in candidates:
        if all(value(candidate, index) == n for index, n in enumerate(column)):
            yield candidate


def plus(text: str, constant: int) -> str:
    """`seq + 1`, `seq - 1`, `seq`."""
    return f"{text} + {constant}" if constant > 0 else f"{text} - {-constant}" if constant else text


# ---- the size of every output axis: the trace's own expression where it holds, else one that fits

FittedAxis = int | Expression | None


@dataclass(frozen=True)
class Observation:
    """The shapes of all outputs in one run of the module."""

    sizes: Mapping[str, int]
    shapes: tuple[tuple[int, ...], ...]


def observed_at(sizes: Mapping[str, int], outputs: Iterable[Any]) -> Observation:
    return Observation(dict(sizes), tuple(tuple(output.shape) for output in outputs))


def fit_outputs(
    observations: Sequence[Observation],
    proposed: Sequence[Sequence[Expression | None]] | None,
    declared: Sequence[Expression],
    *,
    scalars: bool = False,
    ranges: Mapping[str, SizeRange] | None = None,
) -> list[tuple[FittedAxis, ...] | None]:
    """For every output and axis a number, an expression, or None where no rule fits (a size that depends on the data).

    An output whose very number of axes varies has no row at all. With `scalars`, a size that torch leaves to run time
    may depend on a number among the inputs, which is a dim as others are. `ranges` say in which steps dims go, so that
    `height` serves for `4 * (height // 4)` where it is a multiple of four.
    """
    steps = {
        dim: one if one.values is not None else SizeRange(one.lo, None, one.step)
        for dim, one in (ranges or {}).items()
        if one.step > 1 or one.values is not None
    }
    runs = [observation.sizes for observation in observations]
    fitted: list[tuple[FittedAxis, ...] | None] = []
    for index, shape in enumerate(observations[0].shapes):
        if any(len(o.shapes[index]) != len(shape) for o in observations):
            fitted.append(None)
            continue
        row: list[FittedAxis] = []
        for axis in range(len(shape)):
            hint = _size_of_trace(proposed, index, axis)
            if hint is not None and not scalars and _depends_on_data(hint, runs[0]):
                row.append(None)  # that all runs agree is an accident of their data
            else:
                seen = tuple(o.shapes[index][axis] for o in observations)
                row.append(_axis_size(seen, runs, [*([hint] if hint else []), *declared], steps))
        fitted.append(tuple(row))
    return fitted


def _size_of_trace(proposed: Sequence[Sequence[Expression | None]] | None, index: int, axis: int) -> Expression | None:
    if proposed is None or index >= len(proposed) or axis >= len(proposed[index]):
        return None
    return proposed[index][axis]


_AT_RUN_TIME = re.compile(r"u\d+")
"""How torch calls a size that it cannot know before the values."""


def _depends_on_data(hint: Expression, dims: Mapping[str, int]) -> bool:
    return any(_AT_RUN_TIME.fullmatch(name) for name in hint.names if name not in dims)


def _axis_size(
    seen: Column, runs: Sequence[Mapping[str, int]], written: Sequence[Expression], steps: Mapping[str, SizeRange]
) -> FittedAxis:
    """The first expression that holds in all runs, or a shorter one that means the same."""
    if len(set(seen)) == 1:
        return seen[0]

    def value(expression: Expression, run: int) -> int | None:
        is_of_dims = set(expression.names) <= runs[run].keys()  # else torch itself could not express it in dims
        return expression.value_or_none(runs[run]) if is_of_dims else None

    dims = {dim: tuple(sizes[dim] for sizes in runs) for dim in runs[0]}
    simple = itertools.islice(holding(map(parse_expression, _simple_texts(seen, dims)), seen, value), 1)
    # what was written comes first: it may mean more than the runs can show
    found = [*holding(written, seen, value), *simple]
    same = [expression for expression in found if _are_equal_far_off(expression, found[0], list(dims), steps)]
    return min(same, key=lambda expression: len(expression.text), default=None)


_FAR_SIZES = (1, 2, 3, 5, 8, 13, 31, 64, 127, 513, 1000, 4097)


def _are_equal_far_off(one: Expression, other: Expression, dims: Sequence[str], steps: Mapping[str, SizeRange]) -> bool:
    """Whether two expressions are equal far beyond the runs too: `seq` fits the runs where `min(seq, 512)` is meant."""
    sizes_of = {dim: steps.get(dim, SizeRange()).nearest for dim in dims}
    far = (
        {dim: nearest(size + shift * i) for i, (dim, nearest) in enumerate(sizes_of.items())}
        for size in _FAR_SIZES
        for shift in (0, 1, 7, 50)
    )
    try:
        return all(one.value(sizes) == other.value(sizes) for sizes in far)
    except ZeroDivisionError:
        return one == other


def _simple_texts(seen: Column, dims: Mapping[str, Column]) -> Iterator[str]:
    """Simple expressions for a size, the simplest first."""
    yield from dims
    for dim, known in dims.items():
        if (line := whole_line(seen, known)) is not None:
            yield plus(dim if line[0] == 1 else f"{line[0]} * {dim}", line[1])
        yield from (f"min({dim}, {max(seen)})", f"max({dim}, {min(seen)})")
    for (d, one), (e, other) in itertools.combinations_with_replacement(dims.items(), 2):
        if d != e:
            if (offset := offset_of(seen, map(sum, zip(one, other, strict=True)))) is not None:
                yield plus(f"{d} + {e}", offset)
            yield from (f"min({d}, {e})", f"max({d}, {e})")
        yield from _with_product(f"{d} * {e}", seen, tuple(map(math.prod, zip(one, other, strict=True))))
    yield from _strided_text(seen, dims)


def _with_product(text: str, seen: Column, product: Column) -> Iterator[str]:
    ratio = ratio_of(seen, product)
    if ratio is not None and ratio.denominator == 1:
        yield text if ratio == 1 else f"{ratio} * {text}"
    if (offset := offset_of(seen, product)) is not None:
        yield plus(text, offset)


def _strided_text(seen: Column, dims: Mapping[str, Column]) -> Iterator[str]:
    """What convolutions and pools make of a size: (d + a) // b + c; none where the runs cannot tell two apart."""
    found = [
        (dim, stride, offset)
        for dim, known in dims.items()
        for stride in range(2, budgets.LARGEST_DIVISOR + 1)
        for offset in quotient_offsets(seen, known, stride)
    ]
    if len(found) == 1:
        ((dim, stride, offset),) = found
        inner = f"({dim} + {offset % stride})" if offset % stride else dim
        yield plus(f"{inner} // {stride}", offset // stride)


# ---- a whole number of static exports, as an expression of sizes


@dataclass(frozen=True)
class Points:
    """One mapping from dims to sizes per observation; `derived` sizes, as `height//2`, count like dims."""

    at: tuple[Mapping[Size, int], ...]
    derived: Mapping[Size, Column]

    def __len__(self) -> int:
        return len(self.at)

    @functools.cached_property
    def dims(self) -> Mapping[Size, Column]:
        return {dim: tuple(point[dim] for point in self.at) for dim in self.at[0]}

    @functools.cached_property
    def sizes(self) -> Mapping[Size, Column]:
        """The dims, then what is derived from them."""
        return {**self.dims, **self.derived}

    @functools.cached_property
    def products(self) -> Sequence[tuple[Size, Column, int]]:
        """`batch`, `seq`, `batch*seq`, `seq**2` and so on with their numbers and how many factors: shortest first."""
        found = []
        for count in (1, 2, 3):
            for factors in itertools.combinations_with_replacement(self.sizes, count):
                rows = zip(*(self.sizes[factor] for factor in factors), strict=True)
                found.append((sympy.Mul(*factors), tuple(map(math.prod, rows)), count))
        return found

    def only(self, places: Sequence[int]) -> Points:
        """The observations at these places."""
        derived = {size: tuple(numbers[place] for place in places) for size, numbers in self.derived.items()}
        return Points(tuple(self.at[place] for place in places), derived)


def whole_number(column: Column, points: Points, depth: int = 0) -> Size | None:
    """The expression behind these numbers, one per point; None where there is none."""
    if len(set(column)) == 1:
        return number(column[0])
    found = (size for form in _FORMS if (size := form(column, points, depth)) is not None)
    return next(holding(found, column, lambda size, index: evaluated(size, points.at[index])), None)


def _multiple_of_a_size(column: Column, points: Points, _depth: int) -> Size | None:
    for product, known, _ in points.products:
        ratio = ratio_of(column, known)
        if ratio is not None and len(set(known)) > 1:
            return _rounded_down(ratio.numerator * product, ratio.denominator)
    return None


def _line_along_a_size(column: Column, points: Points, _depth: int) -> Size | None:
    """`a*seq + b`, of one dim or one product of dims."""
    for product, known, count in points.products:
        line = line_through(column, known) if count <= 2 and len(set(known)) >= _FEWEST_POINTS else None
        if line is not None:
            slope, start = line
            below = math.lcm(slope.denominator, start.denominator)
            return _rounded_down(int(slope * below) * product + int(start * below), below)
    return None


def _rounded_down(size: Size, divisor: int) -> Size:
    return size if divisor == 1 else sympy.floor(size / divisor)


def _times_a_size(column: Column, points: Points, depth: int) -> Size | None:
    """`batch * (seq + 1)`: what is left after a size or a number that divides all of the column."""
    if depth >= budgets.DEEPEST_FORMULA:
        return None
    for size, known in points.sizes.items():
        if all(m and n % m == 0 for n, m in zip(column, known, strict=True)):
            rest = whole_number(tuple(n // m for n, m in zip(column, known, strict=True)), points, depth + 1)
            if rest is not None:
                return size * rest
    common = math.gcd(*column)
    if common > 1:
        rest = whole_number(tuple(n // common for n in column), points, depth + 1)
        return None if rest is None else common * rest
    return None


def _sum_over_dims(column: Column, points: Points, _depth: int) -> Size | None:
    """`a*height + b*width + c`, where there are more points than numbers to find."""
    dims = list(points.dims)
    if len(dims) < 2 or len(points) < len(dims) + 2:
        return None
    rows = [[*(point[dim] for dim in dims), 1] for point in points.at]
    solution = sympy.linsolve((sympy.Matrix(rows), sympy.Matrix(list(column))))
    if not solution:
        return None
    *factors, start = next(iter(solution))
    if not all(factor.is_Integer for factor in (*factors, start)):
        return None
    return sum((factor * dim for factor, dim in zip(factors, dims, strict=True)), start)


def _half_of_a_product(column: Column, points: Points, depth: int) -> Size | None:
    """`seq * (seq + 1) / 2`, how many pairs there are."""
    double = whole_number(tuple(2 * n for n in column), points, budgets.DEEPEST_FORMULA - 1) if not depth else None
    return None if double is None else sympy.floor(double / 2)


def _rounded_quotient(column: Column, points: Points, _depth: int) -> Size | None:
    """`seq // 4`, rounded down or up, and with an offset where it can be only one."""
    for divisor, (size, known) in itertools.product(range(2, budgets.LARGEST_DIVISOR + 1), points.sizes.items()):
        possible = quotient_offsets(column, known, divisor)
        plain = [offset for offset in (0, divisor - 1) if offset in possible]
        if plain or len(possible) == 1:
            return sympy.floor((size + (plain or possible)[0]) / divisor)
    return None


def _beside_a_dim(column: Column, points: Points, depth: int) -> Size | None:
    """`8 * ceil(seq / 8) - seq`, what is missing up to a multiple, and `seq - seq // 2`."""
    if depth:
        return None
    for dim, known in points.dims.items():
        for sign in (1, -1):
            beside = tuple(sign * n + m for n, m in zip(column, known, strict=True))
            rest = whole_number(beside, points, budgets.DEEPEST_FORMULA - 1)
            if rest is not None:
                return sign * (rest - dim)
    return None


def _cut_off(column: Column, points: Points, depth: int) -> Size | None:
    """`min(seq, 16)` and `max(seq // 4, 1)`, where the end was reached at two points and not at three others."""
    if depth:
        return None
    for end, cut in ((max(column), sympy.Min), (min(column), sympy.Max)):
        free = [place for place, n in enumerate(column) if n != end]
        if len(free) < _FEWEST_POINTS or len(column) - len(free) < 2:
            continue
        inner = whole_number(tuple(column[place] for place in free), points.only(free), budgets.DEEPEST_FORMULA)
        if inner is not None:
            return cut(inner, number(end))
    return None


_FORMS: tuple[Callable[[Column, Points, int], Size | None], ...] = (
    _multiple_of_a_size, _line_along_a_size, _times_a_size, _sum_over_dims, _half_of_a_product, _rounded_quotient,
    _beside_a_dim, _cut_off,
)  # fmt: skip
"""The first form that fits is taken: each is less likely than those before to have been meant."""


# ---- how the sizes of several calls hang together


class FormulaKind(enum.IntEnum):
    """What a formula is; the lower, the plainer."""

    SAME = 0
    SUM = 1
    OFFSET = 2
    MULTIPLE = 3
    PRODUCT = 4
    LONG_SUM = 5
    LONG_PRODUCT = 6
    PART = 7
    LINE = 8


@dataclass(frozen=True)
class Formula:
    """One way to compute a column from others."""

    form: str
    """`{0} + {1}`: the notation, with places for the columns that it is computed from."""
    of: tuple[int, ...]
    """Which columns these are."""
    kind: FormulaKind

    def text(self, names: Mapping[int, str]) -> str:
        """In the notation of `dims=`."""
        return self.form.format(*(names[index] for index in self.of))

    def value(self, sizes: Mapping[int, int]) -> int:
        """Its size where the columns have these sizes."""
        letters = {index: f"c{index}" for index in self.of}
        return Expression(self.text(letters)).value({letters[index]: sizes[index] for index in self.of})


def formulas(column: Column, others: Sequence[Column], still: Iterable[int] = ()) -> tuple[Formula, ...]:
    """Every way to compute a column from the others, the plainest first; `still` are sizes of axes that do not move."""
    candidates = [formula for rule in _RULES for formula in rule(column, others)]
    # what is added to a size that moves may be a size that does not
    candidates += _offsets(column, others, _OFFSETS.union(still))
    found = holding(candidates, column, lambda formula, call: formula.value({i: others[i][call] for i in formula.of}))
    return tuple(sorted(found, key=lambda formula: formula.kind))


def moves(column: Column) -> bool:
    return len(set(column)) > 1


def largest_step(column: Column) -> int:
    """The largest step in which all sizes of a column can be reached from each other."""
    return math.gcd(*(size - column[0] for size in column))


def are_squares(column: Column) -> bool:
    return all(math.isqrt(size) ** 2 == size for size in column)


def _equal_columns(column: Column, others: Sequence[Column]) -> Iterator[Formula]:
    yield from (Formula("{0}", (i,), FormulaKind.SAME) for i, other in enumerate(others) if other == column)


def _sums(column: Column, others: Sequence[Column]) -> Iterator[Formula]:
    for i, j in itertools.combinations(range(len(others)), 2):
        offset = offset_of(column, map(sum, zip(others[i], others[j], strict=True)))
        if offset is not None and abs(offset) <= 1:
            kind = FormulaKind.LONG_SUM if offset else FormulaKind.SUM
            yield Formula(plus("{0} + {1}", offset), (i, j), kind)


def _sums_of_three(column: Column, others: Sequence[Column]) -> Iterator[Formula]:
    for of in itertools.combinations(range(len(others)), 3):
        if offset_of(column, map(sum, zip(*(others[i] for i in of), strict=True))) == 0:
            yield Formula("{0} + {1} + {2}", of, FormulaKind.LONG_SUM)


_OFFSETS = frozenset((1, 2))
"""What is believed to be added to a size: a start token, a start and an end."""


def _offsets(column: Column, others: Sequence[Column], offsets: frozenset[int]) -> Iterator[Formula]:
    """`n + 1`; the smaller of the two is `n`, so that every size from 1 on is valid."""
    for i, other in enumerate(others):
        offset = offset_of(column, other)
        if offset in offsets and offset:
            yield Formula(plus("{0}", offset), (i,), FormulaKind.OFFSET)


def _multiples(column: Column, others: Sequence[Column]) -> Iterator[Formula]:
    """`2 * n`; and `3 * n // 2` where the smaller of the two is no divisor of the larger."""
    for i, other in enumerate(others):
        ratio = _ratio_without_zeros(column, other)
        if ratio is None or ratio <= 1:
            continue
        if ratio.denominator == 1:
            yield Formula(f"{ratio} * {{0}}", (i,), FormulaKind.MULTIPLE)
        elif ratio.numerator <= budgets.LARGEST_RATIO:
            yield Formula(f"{ratio.numerator} * {{0}} // {ratio.denominator}", (i,), FormulaKind.PART)


def _ratio_without_zeros(column: Column, other: Column) -> Fraction | None:
    """Where a size is 0, no ratio is believed."""
    return ratio_of(column, other) if all(column) and all(other) else None


def _products(column: Column, others: Sequence[Column]) -> Iterator[Formula]:
    """`height * width`, `n * n`, and one more for a token that stands for the whole."""
    for i, j in itertools.combinations_with_replacement(range(len(others)), 2):
        offset = offset_of(column, map(math.prod, zip(others[i], others[j], strict=True)))
        if offset in (0, 1):
            kind = FormulaKind.LONG_PRODUCT if offset else FormulaKind.PRODUCT
            yield Formula(plus("{0} * {1}", offset), (i, j), kind)


_DIVISORS = (2, 3, 4, 5, 8, 16, 32)


def _quotients(column: Column, others: Sequence[Column]) -> Iterator[Formula]:
    """`n // 2`, `n // 2 + 1`, `(n + 3) // 4`: what strides and spectra leave."""
    for (i, other), divisor in itertools.product(enumerate(others), _DIVISORS):
        if _ratio_without_zeros(other, column) == divisor:
            continue  # the other is a multiple of this one, which says the same in plainer words
        forms = {0: "{{0}} // {0}", divisor: "{{0}} // {0} + 1", divisor - 1: "({{0}} + {1}) // {0}"}
        possible = quotient_offsets(column, other, divisor)
        for offset, form in forms.items():
            if offset in possible:
                yield Formula(form.format(divisor, divisor - 1), (i,), FormulaKind.PART)


def _lines(column: Column, others: Sequence[Column]) -> Iterator[Formula]:
    """`2 * n - 1`; a line goes through any two calls, so two are believed this one alone and three any other."""
    for i, other in enumerate(others):
        factor, offset = whole_line(column, other) or (0, 0)
        furthest = factor if len(set(other)) >= _FEWEST_POINTS else int(factor == 2)
        if factor > 1 and offset and abs(offset) <= furthest:
            yield Formula(plus(f"{factor} * {{0}}", offset), (i,), FormulaKind.LINE)


_RULES: tuple[Callable[[Column, Sequence[Column]], Iterator[Formula]], ...] = (
    _equal_columns, _sums, _sums_of_three, _multiples, _products, _quotients, _lines,
)  # fmt: skip
