"""Places computed at run time: the operators that `conversion/operators/index.py` puts into a trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir

from anyshape.conversion.operators.onnx_words import op
from anyshape.conversion.operators.onnx_words_shapes import INT64, as_vector, counted, rank, size_of, vector, whole


def _take_along(x: ir.Value, index: ir.Value, dim: int) -> Any:
    """Both are broadcast against each other in all axes but one, then gathered along it."""
    axes = range(rank(x))
    both = [op.Max(size_of(x, axis), size_of(index, axis)) for axis in axes]
    wide = op.Expand(x, vector([size_of(x, dim) if axis == dim else both[axis] for axis in axes]))
    places = op.Expand(index, vector([size_of(index, dim) if axis == dim else both[axis] for axis in axes]))
    return op.GatherElements(wide, places, axis=dim)


def _triangle(rows: Any, columns: Any, offset: Any, lower: bool) -> Any:
    """The places below or above a diagonal, row by row."""
    row = op.Unsqueeze(counted(as_vector(rows)), whole(1))
    column = op.Unsqueeze(counted(as_vector(columns)), whole(0))
    ahead = op.Sub(column, row)
    inside = op.LessOrEqual(ahead, as_vector(offset)) if lower else op.GreaterOrEqual(ahead, as_vector(offset))
    return op.Cast(op.NonZero(inside), to=INT64)


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "anyshape_sizes::take_along": _take_along,
    "anyshape_sizes::triangle": _triangle,
}
