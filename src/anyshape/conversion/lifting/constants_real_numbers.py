"""A real number seen at several sizes as a law of them: `3.5 * sqrt(seq)`, `1 - 1/batch`, `log(height*width)`.

Python and numpy compute such numbers in double precision, and so does the file; a law holds where it gives what was
seen to the last digits of the type that was stored.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from anyshape.sizes.expressions import Size, number
from anyshape.sizes.fit_points import Numbers, Points
from anyshape.sizes.fit_whole_numbers import whole_number

_FEWEST_POINTS = 3
_SIMPLE = 1000
_OFFSETS = (-1, 1, -2, 2)

FUNCTIONS: Mapping[str, tuple[tuple[str, ...], Callable[[float], float]]] = {
    "n": ((), float),
    "1/n": (("Reciprocal",), lambda n: 1.0 / n),
    "sqrt(n)": (("Sqrt",), math.sqrt),
    "log(n)": (("Log",), math.log),
    "1/sqrt(n)": (("Sqrt", "Reciprocal"), lambda n: 1.0 / math.sqrt(n)),
}
"""What is done with a size: the operators of ONNX, in their order, and the same in Python."""


@dataclass(frozen=True)
class Law:
    """`factor * function(size) + start`."""

    size: Size
    function: str = "n"
    factor: float = 1.0
    start: float = 0.0


def real_number(values: Sequence[float], points: Points, precision: float) -> Law | None:
    """The law behind these values, one per point, to a relative precision; None where there is none."""
    if not all(math.isfinite(value) for value in values):
        return None if len(set(map(str, values))) > 1 else Law(number(0), start=values[0])
    if _are_close(values, [values[0]] * len(values), precision):
        return Law(number(0), start=values[0])
    if all(float(value).is_integer() for value in values):
        size = whole_number(tuple(int(value) for value in values), points)
        if size is not None:
            return Law(size)
    return next(_laws(values, points, precision), None)


def _laws(values: Sequence[float], points: Points, precision: float) -> Iterator[Law]:
    sizes = [(size, known) for size, known in _sizes(points) if len(set(known)) >= _FEWEST_POINTS]
    for with_start, (size, known), (name, (_, function)) in itertools.product((False, True), sizes, FUNCTIONS.items()):
        numbers = [function(n) for n in known]
        law = _fitted(size, name, values, numbers, with_start=with_start)
        if _are_close(values, [law.factor * n + law.start for n in numbers], precision):
            yield law


def _sizes(points: Points) -> Iterator[tuple[Size, Numbers]]:
    """What a law may be of: products of sizes, and one more or less than a size; all above 0."""
    for product, known, count in points.products:
        if count <= 2:
            yield product, known
    for (size, known), offset in itertools.product(points.sizes.items(), _OFFSETS):
        if min(known) + offset > 0:
            yield size + offset, tuple(n + offset for n in known)


def _fitted(size: Size, name: str, values: Sequence[float], known: Sequence[float], *, with_start: bool) -> Law:
    """Through the two values farthest apart, or through the largest and 0."""
    low, high = min(range(len(known)), key=known.__getitem__), max(range(len(known)), key=known.__getitem__)
    if not with_start:
        return Law(size, name, _simple(values[high] / known[high]) if known[high] else 0.0)
    factor = _simple((values[high] - values[low]) / (known[high] - known[low]))
    return Law(size, name, factor, _simple(values[low] - factor * known[low]))


def _simple(value: float) -> float:
    """A fraction that somebody may have written, where there is one so close that roundings explain the rest."""
    near = float(Fraction(value).limit_denominator(_SIMPLE))
    return near if abs(near - value) <= 3e-7 * max(abs(value), 1e-3) else value


def _are_close(values: Sequence[float], found: Sequence[float], precision: float) -> bool:
    scale = max(abs(value) for value in values)
    return all(abs(a - b) <= precision * max(abs(a), 1e-2 * scale) for a, b in zip(values, found, strict=True))
