"""Patterns in a constant that was seen at several sizes: the same everywhere, ramps, bands along a diagonal, grids.

The patterns are those of static files, with several observations of each number in them: where a ramp starts and how
it climbs may itself follow the sizes. All arrays here are of int64 or of float64, and so is what is made of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx_ir as ir
import sympy

from anyshape.conversion.lifting.constants_making import Arrays, Maker, shape_of
from anyshape.conversion.lifting.constants_real_numbers import real_number
from anyshape.freeing.constant_patterns import Piece, is_uniform, pieces_of_distance, ramp_step
from anyshape.sizes.expressions import ONE, Shape, Size, evaluated, is_number
from anyshape.sizes.fit_whole_numbers import whole_number

_MOST_NUMBERS = 64
_MOST_FACTORS = 4


def pattern(maker: Maker, arrays: Arrays, shape: Shape, precision: float) -> ir.Value | None:
    """A value that broadcasts to `shape` and is each of the arrays at its own size; None where no pattern gives it."""
    for axis, size in enumerate(shape):
        if not is_number(size) and all(is_uniform(array, axis) for array in arrays):
            arrays = [np.take(array, [0], axis) for array in arrays]
    shape = tuple(ONE if arrays[0].shape[axis] == 1 else size for axis, size in enumerate(shape))
    if all(is_number(size) for size in shape):
        return _numbers(maker, arrays, precision)
    made = (form(maker, arrays, shape, precision) for form in _FORMS)
    return next((value for value in made if value is not None), None)


def _moved(shape: Shape) -> list[int]:
    return [axis for axis, size in enumerate(shape) if not is_number(size)]


def _numbers(maker: Maker, arrays: Arrays, precision: float) -> ir.Value | None:
    """Arrays of one shape, number by number."""
    first = arrays[0]
    if all(np.allclose(array, first, rtol=precision, atol=0, equal_nan=True) for array in arrays):
        return maker.build.constant(first)
    if first.size > _MOST_NUMBERS:
        return None
    rows = list(zip(*(array.ravel().tolist() for array in arrays), strict=True))
    if first.dtype.kind == "f":
        laws = [real_number(row, maker.points, precision) for row in rows]
        return None if None in laws else maker.laws([law for law in laws if law is not None], first.shape)
    sizes = [whole_number(row, maker.points) for row in rows]
    return None if None in sizes else maker.sizes(sizes, first.shape)


# ---- ramps


def _ramp(maker: Maker, arrays: Arrays, shape: Shape, precision: float) -> ir.Value | None:
    """First + step * (0, 1, 2, ...) along one axis."""
    for axis in reversed(_moved(shape)):
        steps = [_step(array, axis, precision) for array in arrays]
        if any(step is None for step in steps):
            continue
        rest = tuple(ONE if a == axis else size for a, size in enumerate(shape))
        first = pattern(maker, [_start(array, axis, precision) for array in arrays], rest, precision)
        step = pattern(maker, steps, rest, 4 * precision)
        if first is not None and step is not None:
            ramp = maker.build.cast(maker.build.ramp(shape[axis], axis, len(shape)), _kind(first), _only(shape, axis))
            return maker.joined("Add", maker.joined("Mul", ramp, step), first)
    return None


def _kind(value: ir.Value) -> ir.DataType:
    assert value.dtype is not None
    return value.dtype


def _only(shape: Shape, axis: int) -> Shape:
    return tuple(size if a == axis else ONE for a, size in enumerate(shape))


def _step(array: Any, axis: int, precision: float) -> Any:
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


def _start(array: Any, axis: int, precision: float) -> Any:
    """The first entry; what is there for roundings alone is 0."""
    first = np.take(array, [0], axis)
    if array.dtype.kind != "f":
        return first
    return np.where(np.abs(first) <= precision * np.abs(array).max(), 0.0, first)


# ---- bands along the diagonal


def _band(maker: Maker, arrays: Arrays, shape: Shape, precision: float) -> ir.Value | None:
    """Entry (i, j) depends on i - j alone: the causal mask, a window around each place, clipped distances."""
    moved = _moved(shape)
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
    return _pieced(made, [pieces[place] for place in full], flat, arrays[0].dtype, precision)


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


def _pieced(
    maker: Maker, rows: Sequence[tuple[Piece, ...]], shape: Shape, dtype: Any, precision: float
) -> ir.Value | None:
    """Where(distance >= start, piece, pieces before), once for each piece but the first."""
    build, rank = maker.build, len(shape)
    down, along = (build.ramp(shape[axis], axis, rank) for axis in _moved(shape))
    distance = build.node("Sub", [down, along], shape)
    result = None
    for column in zip(*rows, strict=True):
        piece = _piece(maker, column, distance, dtype, precision)
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


def _piece(maker: Maker, pieces: Sequence[Piece], distance: ir.Value, dtype: Any, precision: float) -> ir.Value | None:
    """`first + slope * distance`."""
    one = (1,) * len(shape_of(distance))
    first = _numbers(maker, [np.full(one, piece.first, dtype) for piece in pieces], precision)
    slope = whole_number(tuple(piece.slope for piece in pieces), maker.points)
    if first is None or slope is None or slope == 0:
        return first if slope is not None else None
    line = maker.joined("Mul", distance, maker.sizes([slope], one))
    return maker.joined("Add", maker.build.cast(line, _kind(first), shape_of(distance)), first)


# ---- grids


def _grid(maker: Maker, arrays: Arrays, shape: Shape, precision: float) -> ir.Value | None:
    """Along an axis that is a product, as `height*width`, each factor by itself."""
    for axis in _moved(shape):
        factors = _factors(shape[axis])
        if not 2 <= len(factors) <= _MOST_FACTORS:
            continue
        for order in dict.fromkeys(itertools.permutations(factors)):
            made = _regrouped(maker, arrays, shape, axis, order, precision)
            if made is not None:
                return made
    return None


def _factors(size: Size) -> list[Size]:
    found = []
    for factor in sympy.Mul.make_args(sympy.factor_terms(size)):
        base, power = factor.as_base_exp()
        found += [base] * int(power) if power.is_Integer and 0 < power <= _MOST_FACTORS else [factor]
    return found


def _regrouped(
    maker: Maker, arrays: Arrays, shape: Shape, axis: int, order: Sequence[Size], precision: float
) -> ir.Value | None:
    apart = []
    for array, point in zip(arrays, maker.points.at, strict=True):
        sizes = [evaluated(factor, point) for factor in order]
        apart.append(array.reshape(*array.shape[:axis], *sizes, *array.shape[axis + 1 :]))
    inner = (*shape[:axis], *order, *shape[axis + 1 :])
    made = pattern(maker, apart, inner, precision)
    if made is None:
        return None
    whole = maker.build.node("Expand", [made, maker.build.vector(inner)], inner, dtype=made.dtype)
    return maker.build.node("Reshape", [whole, maker.build.vector(shape)], shape, dtype=made.dtype)


_FORMS: tuple[Callable[[Maker, Arrays, Shape, float], ir.Value | None], ...] = (_ramp, _band, _grid)
