"""A whole number seen at several sizes, as the simplest expression of the dims that gives it everywhere it was seen.

In this order: a number, a multiple of a product of dims, `2*seq + 1`, a dim times any of these, a sum over all dims,
half of any of these, a division rounded down or up, and one of these cut off at a number. Where sizes are few and
small, two expressions may agree: the first one is taken, and the check at other sizes decides.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import sympy

from anyshape.sizes.expressions import Size, evaluated, number
from anyshape.sizes.fit_points import Numbers, Points

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
