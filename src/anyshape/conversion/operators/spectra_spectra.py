"""The inverse Fourier transform to real values, from the half of the spectrum that is kept.

The other half is put beside it, mirrored and conjugate, and the whole is transformed. ONNX's one-sided inverse would be
shorter; ONNX Runtime plans its memory for half the result and fails (docs/upstream.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir

from anyshape.conversion.operators.onnx_words import op
from anyshape.conversion.operators.onnx_words_shapes import FLOAT, as_vector, counted, rank, size_of, whole


def _to_real(x: ir.Value, dim: Sequence[int], normalization: int, last_dim_size: int | ir.Value) -> Any:
    """`x` has a last axis of two, the real and the imaginary part."""
    axes = rank(x)
    *others, last = [axis % (axes - 1) + 1 for axis in dim]  # behind the batch that ONNX asks for
    spectrum = op.Unsqueeze(x, whole(0))
    for axis in others:
        spectrum = _scaled(op.DFT(spectrum, axis=axis, inverse=1), normalization, op.Shape(x, start=axis - 1, end=axis))
    length = as_vector(last_dim_size)
    whole_spectrum = _completed(spectrum, last, axes + 1, size_of(x, last - 1), length)
    values = _scaled(op.DFT(whole_spectrum, axis=last, inverse=1), normalization, length)
    return op.Squeeze(op.Slice(values, whole(0), whole(1), whole(-1)), whole(0, -1))


def _completed(spectrum: Any, axis: int, axes: int, kept: Any, length: Any) -> Any:
    """Frequencies above the middle are those below it, conjugate; what the half does not hold is zero."""
    frequency = counted(length)
    above = op.Greater(frequency, op.Div(length, whole(2)))
    place = op.Where(above, op.Sub(length, frequency), frequency)
    there = op.Cast(op.Less(place, kept), to=FLOAT)
    minus, one = (op.Constant(value=ir.tensor(value, dtype=FLOAT)) for value in (-1.0, 1.0))
    signs = op.Mul(there, op.Where(above, minus, one))
    weights = op.Concat(op.Unsqueeze(there, whole(1)), op.Unsqueeze(signs, whole(1)), axis=1)
    between = list(range(1, axes - 1 - axis))
    column = op.Unsqueeze(weights, whole(*between)) if between else weights
    gathered = op.Gather(spectrum, op.Min(place, op.Sub(kept, whole(1))), axis=axis)
    return op.Mul(gathered, op.CastLike(column, gathered))


_NONE, _ROOT = 0, 1


def _scaled(values: Any, normalization: int, length: Any) -> Any:
    """ONNX divides by the length; torch says whether it wants that, its root, or neither."""
    if normalization not in (_NONE, _ROOT):
        return values
    factor = op.CastLike(op.Reshape(length, whole()), values)
    return op.Mul(values, factor if normalization == _NONE else op.Sqrt(factor))


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    "complex aten::_fft_c2r": _to_real,
}
