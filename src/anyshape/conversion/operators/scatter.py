"""Writing values to places: scatter, scatter_add, scatter_reduce, index_reduce, diagonals, and frames that overlap.

torch allows more values than places and means over what fell on one place; ONNX's ScatterElements knows neither.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from anyshape.conversion.operators.onnx_words import (
    INT64,
    counted,
    from_front,
    number,
    op,
    rank,
    size_of,
    vector,
    whole,
)

_REDUCTIONS = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min", "add": "add", "multiply": "mul"}


def _values_with_places(source: ir.Value, index: ir.Value) -> Any:
    """The values that have a place: torch ignores those beyond the index."""
    if source.shape is not None and index.shape is not None and source.shape == index.shape:
        return source
    axes = rank(index)
    if axes == 0:
        return source
    return op.Slice(source, whole(*[0] * axes), op.Shape(index), whole(*range(axes)))


def _with_axis(value: ir.Value) -> Any:
    return op.Reshape(value, whole(-1)) if rank(value) == 0 else value


def _scatter(x: ir.Value, dim: int, index: ir.Value, source: ir.Value, reduction: str = "none") -> Any:
    places = op.Cast(_with_axis(index), to=INT64)
    values = _with_axis(source) if rank(index) == 0 else _values_with_places(source, index)
    if x.dtype == ir.DataType.BOOL and reduction != "none":
        raise NotImplementedError("reducing scatter of booleans")
    written = op.ScatterElements(_with_axis(x), places, values, axis=dim, reduction=reduction)
    return op.Reshape(written, whole()) if rank(x) == 0 else written


def _scatter_source(x: ir.Value, dim: int, index: ir.Value, src: ir.Value, *, reduce: str | None = None) -> Any:
    return _scatter(x, dim, index, src, _REDUCTIONS[reduce] if reduce else "none")


def _scatter_number(x: ir.Value, dim: int, index: ir.Value, value: Any, *, reduce: str | None = None) -> Any:
    spread = op.Expand(number(value, x), op.Shape(_with_axis(index)))
    reduction = _REDUCTIONS[reduce] if reduce else "none"
    written = op.ScatterElements(
        _with_axis(x), op.Cast(_with_axis(index), to=INT64), spread, axis=dim, reduction=reduction
    )
    return op.Reshape(written, whole()) if rank(x) == 0 else written


def _scatter_add(x: ir.Value, dim: int, index: ir.Value, src: ir.Value) -> Any:
    return _scatter(x, dim, index, src, "add")


def _neutral_value(reduce: str, dtype: ir.DataType | None) -> float:
    """What changes nothing in a reduction."""
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    kind = (dtype or ir.DataType.FLOAT).numpy()
    if kind.kind == "f":
        return float("-inf") if reduce == "amax" else float("inf")
    bounds = np.iinfo(kind)
    return int(bounds.min if reduce == "amax" else bounds.max)


def _scatter_reduce(
    x: ir.Value, dim: int, index: ir.Value, src: ir.Value, reduce: str, *, include_self: bool = True
) -> Any:
    places = op.Cast(_with_axis(index), to=INT64)
    values = _with_axis(src) if rank(index) == 0 else _values_with_places(src, index)
    return _scattered_with(x, dim, places, values, reduce, include_self=include_self)


def _scattered_with(x: ir.Value, dim: int, places: Any, values: Any, reduce: str, *, include_self: bool) -> Any:
    base = _with_axis(x)
    if not include_self:
        neutral = op.Expand(number(_neutral_value(reduce, x.dtype), x), op.Shape(places))
        base = op.ScatterElements(base, places, neutral, axis=dim)
    name = _REDUCTIONS["sum" if reduce == "mean" else reduce]
    written = op.ScatterElements(base, places, values, axis=dim, reduction=name)
    if reduce == "mean":
        one = number(1, x)
        had = op.Expand(one if include_self else number(0, x), op.Shape(base))
        many = op.ScatterElements(had, places, op.Expand(one, op.Shape(places)), axis=dim, reduction="add")
        written = op.Div(written, op.Max(many, one))
    return op.Reshape(written, whole()) if rank(x) == 0 else written


def _index_reduce(
    x: ir.Value, dim: int, index: ir.Value, source: ir.Value, reduce: str, *, include_self: bool = True
) -> Any:
    """Each slice of the source goes to the slice that the index names."""
    axis, axes = from_front(dim, x), rank(source)
    column = op.Reshape(op.Cast(index, to=INT64), whole(*(-1 if a == axis else 1 for a in range(axes))))
    return _scattered_with(x, axis, op.Expand(column, op.Shape(source)), source, reduce, include_self=include_self)


def _write_diagonal(x: ir.Value, source: ir.Value, offset: Any = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """The diagonal is where the one place minus the other is the offset; its values stand there in order."""
    first, second, axes = from_front(dim1, x), from_front(dim2, x), rank(x)
    rest = [axis for axis in range(axes) if axis not in (first, second)]
    shift = number(offset, _typed_like_places())
    row = op.Unsqueeze(counted(size_of(x, first)), whole(1))
    column = op.Unsqueeze(counted(size_of(x, second)), whole(0))
    on_it = op.Equal(op.Sub(column, row), shift)
    length = op.Sub(size_of(source, rank(source) - 1), whole(1))
    along = op.Max(op.Min(op.Min(row, column), length), whole(0))
    spread = op.Gather(source, along, axis=rank(source) - 1)  # (rest..., first, second)
    order = [*rest, first, second]
    back = [order.index(axis) for axis in range(axes)]
    mask = op.Expand(on_it, op.Shape(spread))
    return op.Where(op.Transpose(mask, perm=back), op.Transpose(spread, perm=back), x)


def _typed_like_places() -> ir.Value:
    return ir.Value(name="places", type=ir.TensorType(INT64))


def _add_frames(frames: ir.Value, input_sizes: Sequence[Any], dim: int, size: int, step: int) -> Any:
    """The reverse of `unfold`: every frame is added where it was cut out."""
    axes = len(input_sizes)
    axis = dim % axes if axes else 0
    order = [*range(axis + 1), axes, *range(axis + 1, axes)]
    beside = op.Transpose(frames, perm=order)  # each frame's values right behind its number
    kept = [size_of(frames, other) for other in range(axes)]
    in_a_row = op.Reshape(beside, vector([*kept[:axis], -1, *kept[axis + 1 :]]))
    # torch lets the frames of one batch stand for all
    values = op.Expand(in_a_row, vector([*input_sizes[:axis], 1, *input_sizes[axis + 1 :]]))
    starts = op.Mul(op.Unsqueeze(counted(size_of(frames, axis)), whole(1)), whole(step))
    places = op.Add(starts, op.Unsqueeze(counted(size), whole(0)))
    column = op.Reshape(places, whole(*(-1 if a == axis else 1 for a in range(axes))))
    empty = op.Expand(number(0, frames), vector(input_sizes))
    return op.ScatterElements(empty, op.Expand(column, op.Shape(values)), values, axis=axis, reduction="add")


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "aten::scatter.src": _scatter_source,
    "aten::scatter.reduce": _scatter_source,
    "aten::scatter.value": _scatter_number,
    "aten::scatter.value_reduce": _scatter_number,
    "aten::scatter_add": _scatter_add,
    "aten::scatter_reduce.two": _scatter_reduce,
    "aten::index_reduce": _index_reduce,
    "aten::diagonal_scatter": _write_diagonal,
    "aten::unfold_backward": _add_frames,
}
