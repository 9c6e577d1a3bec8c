"""Constants that are a formula: the same everywhere along an axis, a ramp, or a few pieces along the diagonal.

Only exact matches count, on whole numbers: a curve that is merely close to a line is a table.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from anyshape.freeing.walk import Walk, Wants
from anyshape.sizes import budgets
from anyshape.sizes.expressions import ONE, Size, number

Array = Any


def is_uniform(array: Array, axis: int) -> bool:
    first = np.take(array, [0], axis) if array.shape[axis] else array
    same = array == first
    if array.dtype.kind == "f":
        same = same | (np.isnan(array) & np.isnan(first))
    return bool(np.all(same))


def ramp_step(array: Array, axis: int) -> Array | None:
    """What is added from one entry to the next along an axis (of size 1 there), or None where that differs."""
    if array.dtype.kind not in "iuf" or array.shape[axis] < 2 or not is_whole(array):
        return None
    steps = np.diff(array.astype(np.int64), axis=axis)
    return np.take(steps, [0], axis) if is_uniform(steps, axis) else None


def is_whole(array: Array) -> bool:
    return array.dtype.kind in "iu" or bool(np.all(np.isfinite(array)) and np.all(array == np.round(array)))


@dataclass(frozen=True)
class Piece:
    """Entries from one diagonal on: `first + slope * (i - j)`."""

    start: int
    first: Any
    slope: int


def diagonal_pieces(array: Array, rows: int, columns: int) -> tuple[Piece, ...] | None:
    """The causal mask, clipped distances and their kin: entry (i, j) depends on i - j alone, in few straight pieces."""
    if array.shape[rows] != array.shape[columns]:
        return None
    pieces = pieces_of_distance(array, rows, columns)
    return pieces if pieces is not None and len(pieces) > 1 else None


def pieces_of_distance(array: Array, rows: int, columns: int) -> tuple[Piece, ...] | None:
    """The same of any number of rows and columns, even if it is one piece."""
    n, m = array.shape[rows], array.shape[columns]
    if min(n, m) < 3:
        return None
    others = [axis for axis in range(array.ndim) if axis not in (rows, columns)]
    matrix = np.transpose(array, [*others, rows, columns]).reshape(-1, n, m)
    if not is_uniform(matrix, 0):
        return None
    matrix = matrix[0]
    line = np.concatenate([matrix[0, ::-1], matrix[1:, 0]])  # i - j from -(m-1) to n-1
    i, j = np.indices((n, m))
    if not np.array_equal(matrix, line[i - j + m - 1]):
        return None
    pieces = _pieces(line, 1 - m)
    return pieces if len(pieces) <= budgets.MOST_PIECES_OF_A_PATTERN else None


def _pieces(line: Array, start: int) -> tuple[Piece, ...]:
    """The straight pieces of a line, as long as they go; a slope takes three whole numbers to show."""
    pieces: list[Piece] = []
    begin = 0
    while begin < len(line) and len(pieces) <= budgets.MOST_PIECES_OF_A_PATTERN:
        end = begin + 1
        slope = _slope(line[begin : begin + 3])
        while end < len(line) and (
            line[end] == line[begin] if slope == 0 else line[end] == line[begin] + slope * (end - begin)
        ):
            end += 1
        place = start + begin
        pieces.append(Piece(place, line[begin] if slope == 0 else int(line[begin]) - slope * place, slope))
        begin = end
    return tuple(pieces)


def _slope(three: Array) -> int:
    if len(three) < 3 or three.dtype.kind not in "iuf" or not is_whole(three):
        return 0
    first, second = (int(step) for step in np.diff(three.astype(np.int64)))
    return first if first == second else 0


# ---- as formulas in the file, which have no limit

START = "anyshape.start"
"""Under this key the sum that begins a ramp at its first entry knows how long the ramp is, and its step."""
_WHOLE = "iub"
"""Kinds of dtypes that NumPy has for whole numbers; their formulas are computed in int64."""


def formula(walk: Walk, array: Any, wants: Wants) -> ir.Value | None:
    """The constant for every size, of size 1 along axes where it is the same everywhere; None where it is a table."""
    if array.size == 0:
        return None
    for axis in wants:
        if is_uniform(array, axis):
            array = np.take(array, [0], axis)
    rest = {axis: size for axis, size in wants.items() if array.shape[axis] != 1}
    if not rest:
        return walk.builder.constant(array)
    whole = _ramps(walk, array.astype(np.int64), rest) if _ramp_axis(array, rest) is not None else None
    if whole is None and len(rest) == 2:
        whole = _diagonal(walk, array, rest)
    shape = tuple(rest.get(axis, number(n)) for axis, n in enumerate(array.shape))
    return None if whole is None else walk.builder.cast(whole, ir.DataType.from_numpy(array.dtype), shape)


def _ramp_axis(array: Any, wants: Wants) -> int | None:
    return next((axis for axis in reversed(list(wants)) if ramp_step(array, axis) is not None), None)


def _ramps(walk: Walk, array: Any, wants: Wants) -> ir.Value | None:
    """First + step * (0, 1, 2, ...) along one axis, where `first` and `step` may be ramps along another."""
    axis = _ramp_axis(array, wants)
    if axis is None:
        return None
    size, others = wants[axis], {a: s for a, s in wants.items() if a != axis}
    step = np.asarray(ramp_step(array, axis))
    first = _first_entry(walk, array, axis, size) if not others else formula(walk, np.take(array, [0], axis), others)
    slope = formula(walk, step, others)
    if first is None or slope is None:
        return None
    build, ramp = walk.builder, walk.builder.ramp(size, axis, array.ndim)
    if not (step == 1).all():
        ramp = build.joined("Mul", ramp, slope)
    zero = walk.constant(first)
    if zero is not None and not zero.any() and zero.size == 1:
        return ramp
    whole = build.joined("Add", ramp, first)
    producer = whole.producer()
    if producer is not None and zero is not None and zero.size == 1 and step.size == 1:
        producer.meta[START] = (size, int(step.flat[0]))
    return whole


def _first_entry(walk: Walk, array: Any, axis: int, size: Size) -> ir.Value:
    """The first entry; a ramp that falls to 0 starts at the size - 1 in every size, as that of a flip does."""
    n = array.shape[axis]
    if array.size == n and n > 2 and array.flat[0] == n - 1 and array.flat[-1] == 0:
        return walk.builder.reshaped(walk.builder.size(size - 1), [1] * array.ndim, (ONE,) * array.ndim)
    return walk.builder.constant(np.take(array, [0], axis))


def _diagonal(walk: Walk, array: Any, wants: Wants) -> ir.Value | None:
    (rows, size), (columns, other) = sorted(wants.items())
    pieces = diagonal_pieces(array, rows, columns) if size == other else None
    if pieces is None:
        return None
    distance = walk.builder.joined("Sub", *(walk.builder.ramp(size, axis, array.ndim) for axis in (rows, columns)))
    return _joined_pieces(walk, pieces, distance, array.dtype)


def _joined_pieces(walk: Walk, pieces: tuple[Piece, ...], distance: ir.Value, dtype: Any) -> ir.Value:
    """Where(distance < start, before, after), once for each start but the first."""
    build, shape = walk.builder, walk.shape(distance) or ()
    plain = np.dtype(np.int64 if dtype.kind in _WHOLE else np.float64 if dtype == np.float64 else np.float32)
    kind = ir.DataType.from_numpy(plain)
    result = _value_of_piece(walk, pieces[-1], distance, plain)
    for before, after in reversed(list(itertools.pairwise(pieces))):
        start = build.constant(np.array(after.start, np.int64))
        less = build.node("Less", [distance, start], shape, dtype=ir.DataType.BOOL)
        result = build.node("Where", [less, _value_of_piece(walk, before, distance, plain), result], shape, dtype=kind)
    return result


def _value_of_piece(walk: Walk, piece: Piece, distance: ir.Value, dtype: Any) -> ir.Value:
    build, shape = walk.builder, walk.shape(distance) or ()
    if piece.slope == 0:
        return build.constant(np.asarray(piece.first).astype(dtype))
    slope, first = (build.constant(np.array(n, np.int64)) for n in (piece.slope, piece.first))
    line = build.node("Add", [build.node("Mul", [distance, slope], shape), first], shape)
    return build.cast(line, ir.DataType.from_numpy(dtype), shape)
