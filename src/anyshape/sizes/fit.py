"""The size of every output axis as an expression of the dims: the trace's own where it holds, else one that fits."""

from __future__ import annotations

import enum
import functools
import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import sympy

from anyshape.sizes.expressions import Size, evaluated, number
from anyshape.sizes.notation import Expression, parse_expression

if TYPE_CHECKING:
    import torch


Shape = tuple[int, ...]
FittedAxis = int | Expression | None
_LARGEST_STRIDE = 64


@dataclass(frozen=True)
class Observation:
    """The shapes of all outputs in one run of the module."""

    sizes: Mapping[str, int]
    shapes: tuple[Shape, ...]


def observed_at(sizes: Mapping[str, int], outputs: Iterable[torch.Tensor]) -> Observation:
    return Observation(dict(sizes), tuple(tuple(output.shape) for output in outputs))


def fit_outputs(
    observations: Sequence[Observation],
    proposed: Sequence[Sequence[Expression | None]] | None,
    declared: Sequence[Expression],
    *,
    scalars: bool = False,
) -> list[tuple[FittedAxis, ...] | None]:
    """For every output and axis a number, an expression, or None where no rule fits (a size that depends on the data).

    An output whose very number of axes varies has no row at all. With `scalars`, a size that torch leaves to run time
    may depend on a number among the inputs, which is a dim as others are.
    """
    fitted: list[tuple[FittedAxis, ...] | None] = []
    for index, shape in enumerate(observations[0].shapes):
        if any(len(o.shapes[index]) != len(shape) for o in observations):
            fitted.append(None)
            continue
        row: list[FittedAxis] = []
        for axis in range(len(shape)):
            seen = [(o.sizes, o.shapes[index][axis]) for o in observations]
            hint = _hint(proposed, index, axis)
            if hint is not None and not scalars and _depends_on_data(hint, observations[0].sizes):
                row.append(None)  # that all runs agree is an accident of their data
            else:
                row.append(_fit(seen, [*([hint] if hint else []), *declared]))
        fitted.append(tuple(row))
    return fitted


def _hint(proposed: Sequence[Sequence[Expression | None]] | None, index: int, axis: int) -> Expression | None:
    if proposed is None or index >= len(proposed) or axis >= len(proposed[index]):
        return None
    return proposed[index][axis]


_AT_RUN_TIME = re.compile(r"u\d+")
"""How torch calls a size that it cannot know before the values."""


def _depends_on_data(hint: Expression, dims: Mapping[str, int]) -> bool:
    return any(_AT_RUN_TIME.fullmatch(name) for name in hint.names if name not in dims)


_Seen = Sequence[tuple[Mapping[str, int], int]]


def _fit(seen: _Seen, candidates: Sequence[Expression]) -> FittedAxis:
    """The first expression that holds in all runs, or a shorter one that means the same."""
    first = seen[0][1]
    if all(size == first for _, size in seen):
        return first
    simple = itertools.islice((form for form in _forms(seen) if _holds(form, seen)), 1)
    found = [*(candidate for candidate in candidates if _holds(candidate, seen)), *simple]
    same = [expression for expression in found if _agree(expression, found[0], list(seen[0][0]))]
    return min(same, key=lambda expression: len(expression.text), default=None)


_FAR_SIZES = (1, 2, 3, 5, 8, 13, 31, 64, 127, 513, 1000, 4097)


def _agree(one: Expression, other: Expression, dims: Sequence[str]) -> bool:
    """Whether two expressions are equal far beyond the runs too: `seq` fits the runs where `min(seq, 512)` is meant."""
    far = ({dim: size + shift * i for i, dim in enumerate(dims)} for size in _FAR_SIZES for shift in (0, 1, 7, 50))
    try:
        return all(one.value(sizes) == other.value(sizes) for sizes in far)
    except ZeroDivisionError:
        return one == other


def _holds(candidate: Expression, seen: _Seen) -> bool:
    if not set(candidate.names) <= set(seen[0][0]):
        return False  # a size that torch itself could not express in dims
    try:
        return all(candidate.value(sizes) == size for sizes, size in seen)
    except ZeroDivisionError:
        return False


def _forms(seen: _Seen) -> Iterator[Expression]:
    """Simple expressions, the simplest first; each is fitted on two runs and then has to hold in all."""
    dims = list(seen[0][0])
    yield from map(parse_expression, (*dims, *_linear(dims, seen), *_combined(dims, seen)))
    yield from _strided(dims, seen)


def _linear(dims: Sequence[str], seen: _Seen) -> Iterator[str]:
    for dim in dims:
        (a, x), (b, y) = _apart(seen, dim)
        if a != b and (y - x) % (b - a) == 0 and (y - x) // (b - a) != 0:
            slope = (y - x) // (b - a)
            yield _sum(dim if slope == 1 else f"{slope} * {dim}", x - slope * a)
        bounds = sorted({size for _, size in seen})
        yield from (f"min({dim}, {bounds[-1]})", f"max({dim}, {bounds[0]})")


def _combined(dims: Sequence[str], seen: _Seen) -> Iterator[str]:
    sizes, size = seen[0]
    for i, d in enumerate(dims):
        for e in dims[i:]:
            if e != d:
                yield _sum(f"{d} + {e}", size - sizes[d] - sizes[e])
                yield from (f"min({d}, {e})", f"max({d}, {e})")
            product = sizes[d] * sizes[e]
            if product and size % product == 0 and size:
                yield f"{d} * {e}" if size == product else f"{size // product} * {d} * {e}"
            yield _sum(f"{d} * {e}", size - product)


def _strided(dims: Sequence[str], seen: _Seen) -> Iterator[Expression]:
    """What convolutions and pools make of a size: (d + a) // b + c; none where the runs cannot tell two apart."""
    sizes, size = seen[0]
    found = []
    for dim in dims:
        for stride in range(2, _LARGEST_STRIDE + 1):
            for offset in range(stride):
                shift = size - (sizes[dim] + offset) // stride
                if _strided_holds(seen, dim, stride, offset, shift):
                    inner = dim if offset == 0 else f"({dim} + {offset})"
                    found.append(parse_expression(_sum(f"{inner} // {stride}", shift)))
    return iter(found if len(found) == 1 else ())


def _strided_holds(seen: _Seen, dim: str, stride: int, offset: int, shift: int) -> bool:
    value: Callable[[int], int] = lambda n: (n + offset) // stride + shift  # noqa: E731
    return all(value(sizes[dim]) == size for sizes, size in seen)


def _apart(seen: _Seen, dim: str) -> tuple[tuple[int, int], tuple[int, int]]:
    """The runs with the smallest and the largest size of a dim."""
    ordered = sorted((sizes[dim], size) for sizes, size in seen)
    return ordered[0], ordered[-1]


def _sum(text: str, constant: int) -> str:
    if constant == 0:
        return text
    return f"{text} + {constant}" if constant > 0 else f"{text} - {-constant}"


_LARGEST_DIVISOR = 64
_FEWEST_POINTS = 3
"""Two points make a line through anything."""
_DEEPEST = 3


def whole_number(values: Numbers, points: Points, depth: int = 0) -> Size | None:
    """The expression behind these values, one per point; None where there is none."""
    if len(set(values)) == 1:
        return number(values[0])
    for find in _FORMS:
        found = find(values, points, depth)
        if found is not None and _agrees(found, values, points):
            return found
    return None


def _agrees(size: Size, values: Numbers, points: Points) -> bool:
    return all(evaluated(size, point) == value for value, point in zip(values, points.at, strict=True))


# ---- the forms


def _multiple(values: Numbers, points: Points, _depth: int) -> Size | None:
    for product, known, _ in points.products:
        ratio = Fraction(values[0], known[0])
        if len(set(known)) > 1 and all(v == ratio * n for v, n in zip(values, known, strict=True)):
            return _rounded_down(ratio.numerator * product, ratio.denominator)
    return None


def _line(values: Numbers, points: Points, _depth: int) -> Size | None:
    """`a*seq + b`, of one dim or one product of dims."""
    for product, known, count in points.products:
        slope = _slope(values, known) if count <= 2 and len(set(known)) >= _FEWEST_POINTS else None
        if slope is not None:
            start = values[0] - slope * known[0]
            below = math.lcm(slope.denominator, start.denominator)
            return _rounded_down(int(slope * below) * product + int(start * below), below)
    return None


def _slope(values: Numbers, known: Numbers) -> Fraction | None:
    pairs = sorted(set(zip(known, values, strict=True)))
    steps = {Fraction(y1 - y0, x1 - x0) if x1 != x0 else None for (x0, y0), (x1, y1) in itertools.pairwise(pairs)}
    return steps.pop() if len(steps) == 1 else None


def _rounded_down(size: Size, divisor: int) -> Size:
    return size if divisor == 1 else sympy.floor(size / divisor)


def _times_a_size(values: Numbers, points: Points, depth: int) -> Size | None:
    """`batch * (seq + 1)`: what is left after a size or a number that divides all values."""
    if depth >= _DEEPEST:
        return None
    for size, known in points.sizes.items():
        if all(n and value % n == 0 for value, n in zip(values, known, strict=True)):
            rest = whole_number(tuple(v // n for v, n in zip(values, known, strict=True)), points, depth + 1)
            if rest is not None:
                return size * rest
    common = math.gcd(*values)
    if common > 1:
        rest = whole_number(tuple(value // common for value in values), points, depth + 1)
        return None if rest is None else common * rest
    return None


def _sum_over_dims(values: Numbers, points: Points, _depth: int) -> Size | None:
    """`a*height + b*width + c`, where there are more points than numbers to find."""
    dims = list(points.dims)
    if len(dims) < 2 or len(points) < len(dims) + 2:
        return None
    rows = [[*(point[dim] for dim in dims), 1] for point in points.at]
    solution = sympy.linsolve((sympy.Matrix(rows), sympy.Matrix(list(values))))
    if not solution:
        return None
    *factors, start = next(iter(solution))
    if not all(factor.is_Integer for factor in (*factors, start)):
        return None
    return sum((factor * dim for factor, dim in zip(factors, dims, strict=True)), start)


def _half(values: Numbers, points: Points, depth: int) -> Size | None:
    """`seq * (seq + 1) / 2`, how many pairs there are."""
    double = whole_number(tuple(2 * value for value in values), points, _DEEPEST - 1) if not depth else None
    return None if double is None else sympy.floor(double / 2)


def _division(values: Numbers, points: Points, _depth: int) -> Size | None:
    """`seq // 4`, rounded down or up, and with an offset where it can be only one."""
    for divisor, (size, known) in itertools.product(range(2, _LARGEST_DIVISOR + 1), points.sizes.items()):
        # the offset is between these: a quotient is at least the value, and less than one more
        pairs = [(divisor * value, n) for value, n in zip(values, known, strict=True)]
        least, most = max(v - n for v, n in pairs), min(v + divisor - 1 - n for v, n in pairs)
        offsets = [offset for offset in (0, divisor - 1) if least <= offset <= most]
        if offsets or least == most:
            return sympy.floor((size + (offsets[0] if offsets else least)) / divisor)
    return None


def _beside_a_dim(values: Numbers, points: Points, depth: int) -> Size | None:
    """`8 * ceil(seq / 8) - seq`, what is missing up to a multiple, and `seq - seq // 2`."""
    if depth:
        return None
    for dim, known in points.dims.items():
        rest = whole_number(tuple(v + n for v, n in zip(values, known, strict=True)), points, _DEEPEST - 1)
        if rest is not None:
            return rest - dim
        rest = whole_number(tuple(n - v for v, n in zip(values, known, strict=True)), points, _DEEPEST - 1)
        if rest is not None:
            return dim - rest
    return None


def _cut_off(values: Numbers, points: Points, depth: int) -> Size | None:
    """`min(seq, 16)` and `max(seq // 4, 1)`, where the end was reached at two points and not at three others."""
    if depth:
        return None
    for end, cut in ((max(values), sympy.Min), (min(values), sympy.Max)):
        free = [place for place, value in enumerate(values) if value != end]
        if len(free) < _FEWEST_POINTS or len(values) - len(free) < 2:
            continue
        inner = whole_number(tuple(values[place] for place in free), points.only(free), _DEEPEST)
        if inner is not None:
            return cut(inner, number(end))
    return None


_FORMS: tuple[Callable[[Numbers, Points, int], Size | None], ...] = (
    _multiple, _line, _times_a_size, _sum_over_dims, _half, _division, _beside_a_dim, _cut_off,
)  # fmt: skip

Column = tuple[int, ...]
"""The size of one axis in each call."""

_OFFSETS = frozenset((1, 2))
"""What is believed to be added to a size: a start token, a start and an end."""
_LARGEST_RATIO = 16
_DIVISORS = (2, 3, 4, 5, 8, 16, 32)


class Kind(enum.IntEnum):
    """What a relation is; the lower, the plainer."""

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
class Reading:
    """One way to compute a column from others."""

    form: str
    """`{0} + {1}`: the notation, with places for the columns that it is computed from."""
    of: tuple[int, ...]
    """Which columns these are."""
    kind: Kind

    def text(self, names: Mapping[int, str]) -> str:
        """In the notation of `dims=`."""
        return self.form.format(*(names[index] for index in self.of))

    def value(self, sizes: Mapping[int, int]) -> int:
        """Its size where the columns have these sizes."""
        letters = {index: f"c{index}" for index in self.of}
        return Expression(self.text(letters)).value({letters[index]: sizes[index] for index in self.of})


def readings(column: Column, others: Sequence[Column], still: Iterable[int] = ()) -> tuple[Reading, ...]:
    """Every way to compute a column from the others, the plainest first; `still` are sizes of axes that do not move."""
    found = [reading for read in _RULES for reading in read(column, others)]
    found += _offsets(column, others, _OFFSETS.union(still))
    return tuple(sorted(found, key=lambda reading: reading.kind))


def moves(column: Column) -> bool:
    return len(set(column)) > 1


def largest_step(column: Column) -> int:
    """The largest step in which all sizes of a column can be reached from each other."""
    return math.gcd(*(size - column[0] for size in column))


def are_squares(column: Column) -> bool:
    return all(math.isqrt(size) ** 2 == size for size in column)


# ---- one rule for each kind of relation


def _same(column: Column, others: Sequence[Column]) -> Iterator[Reading]:
    yield from (Reading("{0}", (i,), Kind.SAME) for i, other in enumerate(others) if other == column)


def _sums(column: Column, others: Sequence[Column]) -> Iterator[Reading]:
    for i, j in itertools.combinations(range(len(others)), 2):
        offset = _offset(column, [a + b for a, b in zip(others[i], others[j], strict=True)])
        if offset is not None and abs(offset) <= 1:
            yield Reading("{0} + {1}" + _signed(offset), (i, j), Kind.LONG_SUM if offset else Kind.SUM)


def _sums_of_three(column: Column, others: Sequence[Column]) -> Iterator[Reading]:
    for of in itertools.combinations(range(len(others)), 3):
        if column == tuple(map(sum, zip(*(others[i] for i in of), strict=True))):
            yield Reading("{0} + {1} + {2}", of, Kind.LONG_SUM)


def _offsets(column: Column, others: Sequence[Column], offsets: frozenset[int]) -> Iterator[Reading]:
    """`n + 1`; the smaller of the two is `n`, so that every size from 1 on is valid."""
    for i, other in enumerate(others):
        offset = _offset(column, other)
        if offset in offsets and offset:
            yield Reading("{0}" + _signed(offset), (i,), Kind.OFFSET)


def _multiples(column: Column, others: Sequence[Column]) -> Iterator[Reading]:
    """`2 * n`; and `3 * n // 2` where the smaller of the two is no divisor of the larger."""
    for i, other in enumerate(others):
        ratio = _ratio(column, other)
        if ratio is None or ratio[0] <= ratio[1]:
            continue
        if ratio[1] == 1:
            yield Reading(f"{ratio[0]} * {{0}}", (i,), Kind.MULTIPLE)
        elif max(ratio) <= _LARGEST_RATIO:
            yield Reading(f"{ratio[0]} * {{0}} // {ratio[1]}", (i,), Kind.PART)


def _products(column: Column, others: Sequence[Column]) -> Iterator[Reading]:
    """`height * width`, `n * n`, and one more for a token that stands for the whole."""
    for i, j in itertools.combinations_with_replacement(range(len(others)), 2):
        offset = _offset(column, [a * b for a, b in zip(others[i], others[j], strict=True)])
        if offset in (0, 1):
            yield Reading("{0} * {1}" + _signed(offset), (i, j), Kind.LONG_PRODUCT if offset else Kind.PRODUCT)


def _parts(column: Column, others: Sequence[Column]) -> Iterator[Reading]:
    """`n // 2`, `n // 2 + 1`, `(n + 3) // 4`: what strides and spectra leave."""
    for (i, other), divisor in itertools.product(enumerate(others), _DIVISORS):
        if _ratio(other, column) == (divisor, 1):
            continue  # the other is a multiple of this one, which says the same in plainer words
        offset = _offset(column, [size // divisor for size in other])
        if offset in (0, 1):
            yield Reading(f"{{0}} // {divisor}" + _signed(offset), (i,), Kind.PART)
        if column == tuple(-(-size // divisor) for size in other):
            yield Reading(f"({{0}} + {divisor - 1}) // {divisor}", (i,), Kind.PART)


def _lines(column: Column, others: Sequence[Column]) -> Iterator[Reading]:
    """`2 * n - 1`; a line goes through any two calls, so two are believed this one alone and three any other."""
    for i, other in enumerate(others):
        factor = _slope_of_columns(column, other)
        furthest = factor if len(set(other)) > 2 else int(factor == 2)
        offset = _offset(column, [factor * size for size in other])
        if factor > 1 and offset and abs(offset) <= furthest:
            yield Reading(f"{factor} * {{0}}" + _signed(offset), (i,), Kind.LINE)


def _slope_of_columns(column: Column, other: Column) -> int:
    """By how much a column grows while the other grows by one; 0 where that is no whole number."""
    run = max(other) - min(other)
    rise = column[other.index(max(other))] - column[other.index(min(other))]
    return 0 if run == 0 or rise % run else rise // run


_RULES: tuple[Callable[[Column, Sequence[Column]], Iterator[Reading]], ...] = (
    _same, _sums, _sums_of_three, _multiples, _products, _parts, _lines,
)  # fmt: skip


def _offset(column: Column, computed: Sequence[int]) -> int | None:
    """What must be added to all computed sizes, where that is one number."""
    differences = {size - other for size, other in zip(column, computed, strict=True)}
    return differences.pop() if len(differences) == 1 else None


def _ratio(column: Column, other: Column) -> tuple[int, int] | None:
    """The fraction of two columns in lowest terms, where that is one."""
    if not all(column) or not all(other):
        return None
    shared = math.gcd(column[0], other[0])
    ratio = column[0] // shared, other[0] // shared
    return ratio if all(a * ratio[1] == b * ratio[0] for a, b in zip(column, other, strict=True)) else None


def _signed(offset: int) -> str:
    return "" if offset == 0 else f" + {offset}" if offset > 0 else f" - {-offset}"


Numbers = tuple[int, ...]
"""One number per observation."""


@dataclass(frozen=True)
class Points:
    """One mapping from dims to sizes per observation; `derived` sizes, as `height//2`, count like dims."""

    at: tuple[Mapping[Size, int], ...]
    derived: Mapping[Size, Numbers]

    def __len__(self) -> int:
        return len(self.at)

    @functools.cached_property
    def dims(self) -> Mapping[Size, Numbers]:
        return {dim: tuple(point[dim] for point in self.at) for dim in self.at[0]}

    @functools.cached_property
    def sizes(self) -> Mapping[Size, Numbers]:
        """The dims, then what is derived from them."""
        return {**self.dims, **self.derived}

    @functools.cached_property
    def products(self) -> Sequence[tuple[Size, Numbers, int]]:
        """`batch`, `seq`, `batch*seq`, `seq**2` and so on with their numbers and how many factors: shortest first."""
        found = []
        for count in (1, 2, 3):
            for factors in itertools.combinations_with_replacement(self.sizes, count):
                rows = zip(*(self.sizes[factor] for factor in factors), strict=True)
                found.append((sympy.Mul(*factors), tuple(math.prod(row) for row in rows), count))
        return found

    def only(self, places: Sequence[int]) -> Points:
        """The observations at these places."""
        derived = {size: tuple(numbers[place] for place in places) for size, numbers in self.derived.items()}
        return Points(tuple(self.at[place] for place in places), derived)
