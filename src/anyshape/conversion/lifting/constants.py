"""A constant seen at several sizes, computed for every size: by a pattern, or as part of the longest table seen.

The patterns are those of static files (the same everywhere, ramps, bands along a diagonal, grids), with several
observations of each number in them: where a ramp starts and how it climbs may itself follow the sizes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import onnx_ir as ir
import sympy

from anyshape.freeing.builder import Builder
from anyshape.freeing.constant_patterns import Piece, is_uniform, pieces_of_distance, ramp_step
from anyshape.sizes import budgets
from anyshape.sizes.expressions import ONE, Shape, Size, evaluated, from_ir, is_number, number
from anyshape.sizes.fit import Column, Points, whole_number

# ---- a real number as a law of the sizes: `3.5 * sqrt(seq)`, `1 - 1/batch`, `log(height*width)`
#
# Python and numpy compute such numbers in double precision, and so does the file; a law holds where it gives what was
# seen to the last digits of the type that was stored.

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
    return next(_fitting_laws(values, points, precision), None)


def _fitting_laws(values: Sequence[float], points: Points, precision: float) -> Iterator[Law]:
    sizes = [(size, known) for size, known in _sizes_for_laws(points) if len(set(known)) >= _FEWEST_POINTS]
    for with_start, (size, known), (name, (_, function)) in itertools.product((False, True), sizes, FUNCTIONS.items()):
        numbers = [function(n) for n in known]
        law = _law_through(size, name, values, numbers, with_start=with_start)
        if _are_close(values, [law.factor * n + law.start for n in numbers], precision):
            yield law


def _sizes_for_laws(points: Points) -> Iterator[tuple[Size, Column]]:
    """What a law may be of: products of sizes, and one more or less than a size; all above 0."""
    for product, known, count in points.products:
        if count <= 2:
            yield product, known
    for (size, known), offset in itertools.product(points.sizes.items(), _OFFSETS):
        if min(known) + offset > 0:
            yield size + offset, tuple(n + offset for n in known)


def _law_through(size: Size, name: str, values: Sequence[float], known: Sequence[float], *, with_start: bool) -> Law:
    """Through the two values farthest apart, or through the largest and 0."""
    low, high = min(range(len(known)), key=known.__getitem__), max(range(len(known)), key=known.__getitem__)
    if not with_start:
        return Law(size, name, _simple_fraction(values[high] / known[high]) if known[high] else 0.0)
    factor = _simple_fraction((values[high] - values[low]) / (known[high] - known[low]))
    return Law(size, name, factor, _simple_fraction(values[low] - factor * known[low]))


def _simple_fraction(value: float) -> float:
    """A fraction that somebody may have written, where there is one so close that roundings explain the rest."""
    near = float(Fraction(value).limit_denominator(_SIMPLE))
    return near if abs(near - value) <= 3e-7 * max(abs(value), 1e-3) else value


def _are_close(values: Sequence[float], found: Sequence[float], precision: float) -> bool:
    scale = max(abs(value) for value in values)
    return all(abs(a - b) <= precision * max(abs(a), 1e-2 * scale) for a, b in zip(values, found, strict=True))


# ---- numbers as nodes

Arrays = Sequence[Any]
"""A constant at each observation."""
_DOUBLE = ir.DataType.DOUBLE


class UnexplainedError(Exception):
    """No pattern gives what was seen."""


class ShortTableError(UnexplainedError):
    """A table of which every observation is a part, but which ends before the declared sizes do."""


@dataclass(frozen=True)
class Maker:
    """Builds values out of what was seen at these points."""

    build: Builder
    points: Points
    tops: Mapping[Size, int]
    """The largest size of each dim, where one was declared."""
    precision: float = 0.0
    """How far a number may be away from where its law has it, relative to it."""

    def sizes(self, sizes: Sequence[Size], target: tuple[int, ...]) -> ir.Value:
        """Whole numbers as a tensor of this shape."""
        flat = self.build.vector(sizes)
        return flat if len(target) == 1 else self.build.reshaped(flat, target, numbers_of(target))

    def laws(self, laws: Sequence[Law], target: tuple[int, ...]) -> ir.Value:
        """Real numbers as a tensor of this shape, in double precision."""
        parts = [self._law_value(law) for law in laws]
        flat = parts[0]
        if len(parts) > 1:
            flat = self.build.node("Concat", parts, (number(len(parts)),), dtype=_DOUBLE, axis=0)
        return flat if len(target) == 1 else self.build.reshaped(flat, target, numbers_of(target))

    def _law_value(self, law: Law) -> ir.Value:
        if is_number(law.size):
            return self.build.constant(np.array([law.factor * int(law.size) + law.start]))
        # the step of a ramp with one entry, as 1/(n - 1), is never used, but must be a number
        size = sympy.Max(law.size, 1) if law.size.is_Add else law.size
        value = self.build.cast(self.build.size(size), _DOUBLE, (ONE,))
        for operator in FUNCTIONS[law.function][0]:
            value = self.build.node(operator, [value], (ONE,), dtype=_DOUBLE)
        if law.factor != 1:
            value = self.build.joined("Mul", value, self.build.constant(np.array([law.factor])))
        return value if law.start == 0 else self.build.joined("Add", value, self.build.constant(np.array([law.start])))


def shape_of(value: ir.Value) -> Shape:
    return from_ir(value.shape) or ()


def numbers_of(shape: Sequence[int]) -> Shape:
    return tuple(number(n) for n in shape)


# ---- patterns, of arrays of int64 or float64


def pattern(maker: Maker, arrays: Arrays, shape: Shape) -> ir.Value | None:
    """A value that broadcasts to `shape` and is each of the arrays at its own size; None where no pattern gives it."""
    for axis, size in enumerate(shape):
        if not is_number(size) and all(is_uniform(array, axis) for array in arrays):
            arrays = [np.take(array, [0], axis) for array in arrays]
    shape = tuple(ONE if arrays[0].shape[axis] == 1 else size for axis, size in enumerate(shape))
    if all(is_number(size) for size in shape):
        return _numbers_value(maker, arrays)
    made = (form(maker, arrays, shape) for form in _FORMS)
    return next((value for value in made if value is not None), None)


def _moving_axes(shape: Shape) -> list[int]:
    return [axis for axis, size in enumerate(shape) if not is_number(size)]


def _numbers_value(maker: Maker, arrays: Arrays) -> ir.Value | None:
    """Arrays of one shape, number by number."""
    first = arrays[0]
    if all(np.allclose(array, first, rtol=maker.precision, atol=0, equal_nan=True) for array in arrays):
        return maker.build.constant(first)
    if first.size > budgets.MOST_NUMBERS_OF_A_LAW:
        return None
    rows = list(zip(*(array.ravel().tolist() for array in arrays), strict=True))
    if first.dtype.kind == "f":
        laws = [real_number(row, maker.points, maker.precision) for row in rows]
        return None if None in laws else maker.laws([law for law in laws if law is not None], first.shape)
    sizes = [whole_number(row, maker.points) for row in rows]
    return None if None in sizes else maker.sizes(sizes, first.shape)


# ---- ramps


def _ramp(maker: Maker, arrays: Arrays, shape: Shape) -> ir.Value | None:
    """First + step * (0, 1, 2, ...) along one axis."""
    for axis in reversed(_moving_axes(shape)):
        steps = [_step_of_ramp(array, axis, maker.precision) for array in arrays]
        if any(step is None for step in steps):
            continue
        rest = tuple(ONE if a == axis else size for a, size in enumerate(shape))
        first = pattern(maker, [_start_of_ramp(array, axis, maker.precision) for array in arrays], rest)
        step = pattern(replace(maker, precision=4 * maker.precision), steps, rest)
        if first is not None and step is not None:
            along = tuple(size if a == axis else ONE for a, size in enumerate(shape))
            ramp = maker.build.cast(maker.build.ramp(shape[axis], axis, len(shape)), _dtype_of(first), along)
            return maker.build.joined("Add", maker.build.joined("Mul", ramp, step), first)
    return None


def _dtype_of(value: ir.Value) -> ir.DataType:
    assert value.dtype is not None
    return value.dtype


def _step_of_ramp(array: Any, axis: int, precision: float) -> Any:
    """What is added from one entry to the next, of size 1 along the axis; None where that differs."""
    n = array.shape[axis]
    if array.dtype.kind != "f":
        return ramp_step(array, axis)
    if n < 3 or not np.all(np.isfinite(array)):
        return None
    first, last = np.take(array, [0], axis), np.take(array, [n - 1], axis)
    step = (last - first) / (n - 1)
    along = np.arange(n).reshape([-1 if a == axis else 1 for a in range(array.ndim)])
    is_line = np.allclose(array, first + step * along, rtol=0, atol=precision * float(np.abs(array).max()))
    return step if is_line else None


def _start_of_ramp(array: Any, axis: int, precision: float) -> Any:
    """The first entry; what is there for roundings alone is 0."""
    first = np.take(array, [0], axis)
    if array.dtype.kind != "f":
        return first
    return np.where(np.abs(first) <= precision * np.abs(array).max(), 0.0, first)


# ---- bands along the diagonal


def _band(maker: Maker, arrays: Arrays, shape: Shape) -> ir.Value | None:
    """Entry (i, j) depends on i - j alone: the causal mask, a window around each place, clipped distances."""
    moved = _moving_axes(shape)
    found = [pieces_of_distance(array, *moved) if len(moved) == 2 else None for array in arrays]
    pieces = [row for row in found if row is not None]
    if len(pieces) < len(arrays):
        return None
    most = max(len(row) for row in pieces)
    full = [place for place, row in enumerate(pieces) if len(row) == most]
    if len(full) < len(arrays) and not _are_within(pieces, pieces[full[-1]]):
        return None  # small matrices show the inner pieces alone, if all are where they are in large ones
    made = replace(maker, points=maker.points.only(full))
    flat = tuple(size if axis in moved else ONE for axis, size in enumerate(shape))
    return _value_of_pieces(made, [pieces[place] for place in full], flat, arrays[0].dtype)


def _are_within(pieces: Sequence[tuple[Piece, ...]], whole: tuple[Piece, ...]) -> bool:
    """Whether all but the first piece of each row begin where one of the whole does, and go on like it."""
    if any(len(row) == len(whole) and row[1:] != whole[1:] for row in pieces):
        return False
    rest = [(piece, index) for row in pieces if len(row) < len(whole) for index, piece in enumerate(row)]
    return all(
        any(
            (piece.first, piece.slope) == (one.first, one.slope) and (not index or piece.start == one.start)
            for one in whole
        )
        for piece, index in rest
    )


def _value_of_pieces(maker: Maker, rows: Sequence[tuple[Piece, ...]], shape: Shape, dtype: Any) -> ir.Value | None:
    """Where(distance >= start, piece, pieces before), once for each piece but the first."""
    build, rank = maker.build, len(shape)
    distance = build.joined("Sub", *(build.ramp(shape[axis], axis, rank) for axis in _moving_axes(shape)))
    result = None
    for column in zip(*rows, strict=True):
        piece = _piece_value(maker, column, distance, dtype)
        start = whole_number(tuple(one.start for one in column), maker.points)
        if piece is None or start is None:
            return None
        if result is None:  # the first piece begins before all others
            result = build.node("Expand", [piece, build.vector(shape)], shape, dtype=piece.dtype)
            continue
        bound = maker.sizes([start], (1,) * rank)
        reached = build.node("GreaterOrEqual", [distance, bound], shape, dtype=ir.DataType.BOOL)
        result = build.node("Where", [reached, piece, result], shape, dtype=piece.dtype)
    return result


def _piece_value(maker: Maker, pieces: Sequence[Piece], distance: ir.Value, dtype: Any) -> ir.Value | None:
    """`first + slope * distance`."""
    one = (1,) * len(shape_of(distance))
    first = _numbers_value(maker, [np.full(one, piece.first, dtype) for piece in pieces])
    slope = whole_number(tuple(piece.slope for piece in pieces), maker.points)
    if first is None or slope is None or slope == 0:
        return first if slope is not None else None
    line = maker.build.joined("Mul", distance, maker.sizes([slope], one))
    return maker.build.joined("Add", maker.build.cast(line, _dtype_of(first), shape_of(distance)), first)


# ---- grids


def _grid(maker: Maker, arrays: Arrays, shape: Shape) -> ir.Value | None:
    """Along an axis that is a product, as `height*width`, each factor by itself."""
    for axis in _moving_axes(shape):
        factors = _factors(shape[axis])
        if not 2 <= len(factors) <= budgets.MOST_FACTORS_OF_A_LAW:
            continue
        for order in dict.fromkeys(itertools.permutations(factors)):
            made = _value_by_factors(maker, arrays, shape, axis, order)
            if made is not None:
                return made
    return None


def _factors(size: Size) -> list[Size]:
    found = []
    for factor in sympy.Mul.make_args(sympy.factor_terms(size)):
        base, power = factor.as_base_exp()
        found += [base] * int(power) if power.is_Integer and 0 < power <= budgets.MOST_FACTORS_OF_A_LAW else [factor]
    return found


def _value_by_factors(maker: Maker, arrays: Arrays, shape: Shape, axis: int, order: Sequence[Size]) -> ir.Value | None:
    apart = []
    for array, point in zip(arrays, maker.points.at, strict=True):
        sizes = [evaluated(factor, point) for factor in order]
        apart.append(array.reshape(*array.shape[:axis], *sizes, *array.shape[axis + 1 :]))
    inner = (*shape[:axis], *order, *shape[axis + 1 :])
    made = pattern(maker, apart, inner)
    if made is None:
        return None
    whole = maker.build.node("Expand", [made, maker.build.vector(inner)], inner, dtype=made.dtype)
    return maker.build.node("Reshape", [whole, maker.build.vector(shape)], shape, dtype=made.dtype)


_FORMS: tuple[Callable[[Maker, Arrays, Shape], ir.Value | None], ...] = (_ramp, _band, _grid)


# ---- the constant

_ROUNDINGS = 8
"""How many roundings a number may be away from where its law has it."""


def constant(maker: Maker, arrays: Arrays) -> ir.Value:
    """The value that is each of these arrays at its own size; UnexplainedError where nothing gives it."""
    shape = _common_shape(maker, arrays)
    kind = arrays[0].dtype.kind
    made = None
    if kind in "iubf" and all(array.size for array in arrays):
        precision = _ROUNDINGS * float(np.finfo(arrays[0].dtype).eps) if kind == "f" else 0.0
        plain = [array.astype(np.float64 if kind == "f" else np.int64) for array in arrays]
        made = pattern(replace(maker, precision=precision), plain, shape)
    if made is None:
        return _table(maker, arrays, shape)
    return _expanded_to(maker, _in_type_of(maker, made, arrays), shape)


def _common_shape(maker: Maker, arrays: Arrays) -> Shape:
    if len({array.ndim for array in arrays}) > 1:
        raise UnexplainedError("has another number of axes at other sizes")
    shape = [whole_number(tuple(sizes), maker.points) for sizes in zip(*(a.shape for a in arrays), strict=True)]
    if None in shape:
        seen = ", ".join(str(list(array.shape)) for array in arrays)
        raise UnexplainedError(f"has the shapes {seen}, which follow no expression of the dims")
    return tuple(shape)


def _in_type_of(maker: Maker, value: ir.Value, arrays: Arrays) -> ir.Value:
    dtype = arrays[0].dtype
    if value.const_value is not None:
        return maker.build.constant(value.const_value.numpy().astype(dtype))
    return maker.build.cast(value, ir.DataType.from_numpy(dtype), shape_of(value))


def _expanded_to(maker: Maker, value: ir.Value, shape: Shape) -> ir.Value:
    """Repeated along axes where it is the same everywhere."""
    if shape_of(value) == shape:
        return value
    return maker.build.node("Expand", [value, maker.build.vector(shape)], shape, dtype=value.dtype)


def _table(maker: Maker, arrays: Arrays, shape: Shape) -> ir.Value:
    """The first entries of the longest, where every other is just that, and no size wants more of them."""
    longest = max(arrays, key=lambda array: array.size)
    moved = _moving_axes(shape)
    for array in arrays:
        part = longest[tuple(slice(n) for n in array.shape)]
        if not moved or not np.array_equal(array, part, equal_nan=array.dtype.kind == "f"):
            raise UnexplainedError("follows no pattern that is known")
    if any((evaluated(shape[axis], maker.tops) or math.inf) > longest.shape[axis] for axis in moved):
        raise ShortTableError("is a table, and nothing tells its entries beyond those that were seen")
    build = maker.build
    starts, axes = build.constant(np.zeros(len(moved), np.int64)), build.constant(np.array(moved, np.int64))
    table, ends = build.constant(longest), build.vector([shape[axis] for axis in moved])
    return build.node("Slice", [table, starts, ends, axes], shape, dtype=table.dtype)
