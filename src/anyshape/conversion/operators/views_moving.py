"""Values that change place: rolled by a size, and axes dropped where they have size 1 at run time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir

from anyshape.conversion.operators.onnx_words import op
from anyshape.conversion.operators.onnx_words_shapes import as_vector, from_front, rank, size_of, static_size, whole


def _roll(x: ir.Value, shifts: Any, dims: Sequence[int] = ()) -> Any:
    """What leaves at the end comes back at the front; without axes, over all values in a row."""
    moves = list(shifts) if isinstance(shifts, list | tuple) else [shifts]
    if not dims:
        flat = op.Reshape(x, whole(-1))
        return op.Reshape(_rolled(flat, moves[0], 0), op.Shape(x))
    result = op.Identity(x)
    for shift, dim in zip(moves, dims, strict=True):
        axis = from_front(dim, x)
        result = _rolled(result, shift, axis, static_size(x, axis))
    return result


def _rolled(x: Any, shift: int | ir.Value, axis: int, size: int | None = None) -> Any:
    if size and not isinstance(shift, ir.Value):
        cut = whole(-shift % size)
    else:
        length = op.Max(size_of(x, axis), whole(1))
        # ONNX's Mod of integers has the sign of the divisor
        cut = op.Mod(op.Neg(as_vector(shift)), length)
    back = op.Slice(x, cut, whole(2**62), whole(axis))
    return op.Concat(back, op.Slice(x, whole(0), cut, whole(axis)), axis=axis)


def _squeeze(x: ir.Value, dim: Any) -> Any:
    """An axis goes if its size is 1 at run time, as in eager; the rank of what follows depends on it."""
    if rank(x) == 0:
        return op.Identity(x)
    axes = sorted({from_front(axis, x) for axis in (dim if isinstance(dim, list | tuple) else [dim])})
    sizes = {axis: static_size(x, axis) for axis in axes}
    certain = [axis for axis in axes if sizes[axis] == 1]
    uncertain = [axis for axis in axes if sizes[axis] is None]
    if not uncertain:
        return op.Squeeze(x, whole(*certain)) if certain else op.Identity(x)
    shape = op.Shape(x)
    fixed = op.Constant(value=ir.tensor([axis not in uncertain for axis in range(rank(x))], dtype=ir.DataType.BOOL))
    stays = op.Or(fixed, op.Not(op.Equal(shape, whole(1))))
    if certain:
        here = op.Constant(value=ir.tensor([axis not in certain for axis in range(rank(x))], dtype=ir.DataType.BOOL))
        stays = op.And(stays, here)
    return op.Reshape(x, op.Compress(shape, stays, axis=0), allowzero=1)


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "aten::roll": _roll,
    "aten::squeeze.dim": _squeeze,
    "aten::squeeze.dims": _squeeze,
}
