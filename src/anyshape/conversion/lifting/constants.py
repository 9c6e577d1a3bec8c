"""A constant seen at several sizes, computed for every size: by a pattern, or as part of the longest table seen."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from anyshape.conversion.lifting.constants_making import Arrays, Maker, ShortTableError, UnexplainedError, shape_of
from anyshape.conversion.lifting.constants_patterns import pattern
from anyshape.sizes.expressions import Shape, evaluated, is_number
from anyshape.sizes.fit_whole_numbers import whole_number

_ROUNDINGS = 8
"""How many roundings a number may be away from where its law has it."""


def constant(maker: Maker, arrays: Arrays) -> ir.Value:
    """The value that is each of these arrays at its own size; UnexplainedError where nothing gives it."""
    shape = _shape(maker, arrays)
    kind = arrays[0].dtype.kind
    made = None
    if kind in "iubf" and all(array.size for array in arrays):
        precision = _ROUNDINGS * float(np.finfo(arrays[0].dtype).eps) if kind == "f" else 0.0
        plain = [array.astype(np.float64 if kind == "f" else np.int64) for array in arrays]
        made = pattern(maker, plain, shape, precision)
    return _whole(maker, _cast(maker, made, arrays), shape) if made is not None else _table(maker, arrays, shape)


def _shape(maker: Maker, arrays: Arrays) -> Shape:
    if len({array.ndim for array in arrays}) > 1:
        raise UnexplainedError("has another number of axes at other sizes")
    shape = [whole_number(tuple(sizes), maker.points) for sizes in zip(*(a.shape for a in arrays), strict=True)]
    if None in shape:
        seen = ", ".join(str(list(array.shape)) for array in arrays)
        raise UnexplainedError(f"has the shapes {seen}, which follow no expression of the dims")
    return tuple(shape)


def _cast(maker: Maker, value: ir.Value, arrays: Arrays) -> ir.Value:
    dtype = arrays[0].dtype
    if value.const_value is not None:
        return maker.build.constant(value.const_value.numpy().astype(dtype))
    return maker.build.cast(value, ir.DataType.from_numpy(dtype), shape_of(value))


def _whole(maker: Maker, value: ir.Value, shape: Shape) -> ir.Value:
    """Repeated along axes where it is the same everywhere."""
    if shape_of(value) == shape:
        return value
    return maker.build.node("Expand", [value, maker.build.vector(shape)], shape, dtype=value.dtype)


def _table(maker: Maker, arrays: Arrays, shape: Shape) -> ir.Value:
    """The first entries of the longest, where every other is just that, and no size wants more of them."""
    longest = max(arrays, key=lambda array: array.size)
    moved = [axis for axis, size in enumerate(shape) if not is_number(size)]
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
