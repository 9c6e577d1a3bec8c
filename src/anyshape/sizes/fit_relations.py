"""How columns of sizes hang together: `n`, `n + 1`, `2 * n`, `past + seq`, `height * width`, `n // 2 + 1`.

A column holds the size of one axis in each of several calls. From numbers alone a relation is only ever a reading: two
calls at which `b` is `a + 1` do not show that it always is. So every reading that fits is given, the plainest first.
"""

from __future__ import annotations

import enum
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from anyshape.sizes.notation import Expression

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
        factor = _slope(column, other)
        furthest = factor if len(set(other)) > 2 else int(factor == 2)
        offset = _offset(column, [factor * size for size in other])
        if factor > 1 and offset and abs(offset) <= furthest:
            yield Reading(f"{factor} * {{0}}" + _signed(offset), (i,), Kind.LINE)


def _slope(column: Column, other: Column) -> int:
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
