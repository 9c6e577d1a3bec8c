"""A constant as a formula of the sizes: the same everywhere, ramps, or pieces along the diagonal; it has no limit."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from anyshape.freeing.constant_patterns import Piece, diagonal_pieces, is_uniform, ramp_step
from anyshape.freeing.walk import Walk
from anyshape.sizes.expressions import ONE, Shape, Size, number

Wants = Mapping[int, Size]
"""Axis -> the size that it shall have."""
_WHOLE = "iub"


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
    first = _start(walk, array, axis, size) if not others else formula(walk, np.take(array, [0], axis), others)
    slope = formula(walk, step, others)
    if first is None or slope is None:
        return None
    build, ramp = walk.builder, walk.builder.ramp(size, axis, array.ndim)
    if not (step == 1).all():
        ramp = build.node("Mul", [ramp, slope], _joined(walk, ramp, slope))
    zero = walk.constant(first)
    if zero is not None and not zero.any() and zero.size == 1:
        return ramp
    return build.node("Add", [ramp, first], _joined(walk, ramp, first))


def _start(walk: Walk, array: Any, axis: int, size: Size) -> ir.Value:
    """The first entry; a ramp that falls to 0 starts at the size - 1 in every size, as that of a flip does."""
    first = np.take(array, [0], axis)
    n = array.shape[axis]
    if array.size == n and n > 2 and array.flat[0] == n - 1 and array.flat[-1] == 0:
        shape = (ONE,) * array.ndim
        return walk.builder.reshaped(walk.builder.size(size - 1), [1] * array.ndim, shape)
    return walk.builder.constant(first)


def _joined(walk: Walk, a: ir.Value, b: ir.Value) -> Shape:
    """The shape of two values that broadcast, both of the same rank."""
    pairs = zip(walk.shape(a) or (), walk.shape(b) or (), strict=True)
    return tuple(y if x == 1 else x for x, y in pairs)


def _diagonal(walk: Walk, array: Any, wants: Wants) -> ir.Value | None:
    (rows, size), (columns, other) = sorted(wants.items())
    pieces = diagonal_pieces(array, rows, columns) if size == other else None
    if pieces is None:
        return None
    build, rank = walk.builder, array.ndim
    shape = tuple(wants.get(axis, ONE) for axis in range(rank))
    down, along = build.ramp(size, rows, rank), build.ramp(size, columns, rank)
    distance = build.node("Sub", [down, along], shape)
    return _pieced(walk, pieces, distance, array.dtype, shape)


def _pieced(walk: Walk, pieces: tuple[Piece, ...], distance: ir.Value, dtype: Any, shape: Shape) -> ir.Value:
    """Where(distance < start, before, after), once for each start but the first."""
    build = walk.builder
    plain = np.dtype(np.int64 if dtype.kind in _WHOLE else np.float64 if dtype == np.float64 else np.float32)
    kind = ir.DataType.from_numpy(plain)
    result = _piece(walk, pieces[-1], distance, plain, shape)
    for before, after in reversed(list(itertools.pairwise(pieces))):
        start = build.constant(np.array(after.start, np.int64))
        less = build.node("Less", [distance, start], shape, dtype=ir.DataType.BOOL)
        result = build.node("Where", [less, _piece(walk, before, distance, plain, shape), result], shape, dtype=kind)
    return result


def _piece(walk: Walk, piece: Piece, distance: ir.Value, dtype: Any, shape: Shape) -> ir.Value:
    build = walk.builder
    if piece.slope == 0:
        return build.constant(np.asarray(piece.first).astype(dtype))
    slope, first = (build.constant(np.array(n, np.int64)) for n in (piece.slope, piece.first))
    line = build.node("Add", [build.node("Mul", [distance, slope], shape), first], shape)
    return build.cast(line, ir.DataType.from_numpy(dtype), shape)
