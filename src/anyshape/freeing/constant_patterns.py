"""Constants that are a formula: the same everywhere along an axis, a ramp, or a few pieces along the diagonal.

Only exact matches count, on whole numbers: a curve that is merely close to a line is a table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from anyshape.sizes import budgets

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
