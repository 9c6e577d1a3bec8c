"""Complex values, and spectra whose length is a size: `torch.istft(..., length=n)`, `torch.fft.irfft(x, n)`.

Recognised: an inverse short-time Fourier transform cut or filled up to a symbolic length; torch's operator takes a
plain number there, which pins it. Put there: what the operator does, step by step: every frame back to samples, times
the window, added where it belongs, divided by the windows' squares added likewise, cut out. The frequencies of a
transform are counted and divided by its length.

The inverse transform to real values is translated from the half of the spectrum that is kept: the other half is put
beside it, mirrored and conjugate, and the whole is transformed. ONNX's one-sided inverse would be shorter; ONNX Runtime
plans its memory for half the result and fails (docs/upstream.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import onnx_ir as ir
import torch
import torch.nn.functional as F  # noqa: N812  everybody's name for it
from torch import Tensor

from anyshape.conversion.operators.elementwise import angle_of
from anyshape.conversion.operators.onnx_words import (
    COMPLEX,
    DOUBLE,
    FLOAT,
    as_scalar,
    as_vector,
    counted,
    exact,
    literal,
    number,
    op,
    rank,
    size_of,
    torchs_translation,
    vector,
    whole,
)
from anyshape.conversion.operators.repair import Answer, Repair, Used, answering, arange, is_size

# ---- the repair

_padded: Callable[..., Tensor] = F.pad  # typed for plain numbers


def _whole_window(window: Tensor | None, win_length: int, n_fft: int, like: Tensor) -> Tensor:
    values = torch.ones(win_length, dtype=like.dtype, device=like.device) if window is None else window
    left = (n_fft - win_length) // 2
    return F.pad(values, (left, n_fft - win_length - left))


def _overlapping_sum(frames: Tensor, hop: int) -> Tensor:
    """(batch, frames, samples) -> (batch, time): each frame is added where it belongs."""
    many, samples = frames.shape[1], frames.shape[2]
    total = samples + hop * (many - 1)
    joined = F.fold(frames.transpose(1, 2), (1, total), (1, samples), stride=(1, hop))
    return joined.reshape(frames.shape[0], total)


def _inverse_by_size(
    used: Used,
    input: Tensor,  # noqa: A002
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: Any = None,
    return_complex: bool = False,
) -> Any:
    if not is_size(length) or return_complex:
        return NotImplemented
    used("torch.istft: cut to the size at run time")
    hop, sided = hop_length or n_fft // 4, onesided is not False and input.shape[-2] != n_fft
    spectrum = (input if input.ndim == 3 else input.unsqueeze(0)).transpose(1, 2)
    frames = torch.fft.irfft(spectrum, n=n_fft) if sided else torch.fft.ifft(spectrum, n=n_fft).real
    frames = frames * n_fft**0.5 if normalized else frames
    values = _whole_window(window, win_length or n_fft, n_fft, frames)
    squares = (values * values).expand_as(frames[:1])
    start = n_fft // 2 if center else 0
    signal = _padded(_overlapping_sum(frames * values, hop), (0, length))[:, start : start + length]
    weight = _padded(_overlapping_sum(squares, hop), (0, length), value=1.0)[:, start : start + length]
    result = signal / weight
    return result if input.ndim == 3 else result.squeeze(0)


def _frequencies(halved: bool, used: Used, n: Any, d: float = 1.0, **options: Any) -> Any:
    """0, 1, 2, ... over the length; in whole spectra, those from the middle on are negative."""
    if not is_size(n):
        return NotImplemented
    used("torch.fft frequencies: by the size at run time")
    length: Any = n
    index = arange(length // 2 + 1 if halved else length, **options)
    signed = index if halved else torch.where(index < (length + 1) // 2, index, index - length)
    return signed / (length * d)


_ANSWERS: dict[tuple[Any, str], Answer] = {
    (torch, "istft"): _inverse_by_size,
    (Tensor, "istft"): _inverse_by_size,
    (torch.fft, "fftfreq"): partial(_frequencies, False),
    (torch.fft, "rfftfreq"): partial(_frequencies, True),
}
SPECTRA = Repair("inverse spectra", answering(_ANSWERS))


# ---- ONNX: spectra


def _to_real(x: ir.Value, dim: Sequence[int], normalization: int, last_dim_size: int | ir.Value) -> Any:
    """`x` has a last axis of two, the real and the imaginary part."""
    axes = rank(x)
    *others, last = [axis % (axes - 1) + 1 for axis in dim]  # behind the batch that ONNX asks for
    spectrum = op.Unsqueeze(x, whole(0))
    for axis in others:
        spectrum = _normalised_as_torch(
            op.DFT(spectrum, axis=axis, inverse=1), normalization, op.Shape(x, start=axis - 1, end=axis)
        )
    length = as_vector(last_dim_size)
    complete = _whole_spectrum(spectrum, last, axes + 1, size_of(x, last - 1), length)
    values = _normalised_as_torch(op.DFT(complete, axis=last, inverse=1), normalization, length)
    return op.Squeeze(op.Slice(values, whole(0), whole(1), whole(-1)), whole(0, -1))


def _whole_spectrum(spectrum: Any, axis: int, axes: int, kept: Any, length: Any) -> Any:
    """Frequencies above the middle are those below it, conjugate; what the half does not hold is zero."""
    frequency = counted(length)
    above = op.Greater(frequency, op.Div(length, whole(2)))
    place = op.Where(above, op.Sub(length, frequency), frequency)
    there = op.Cast(op.Less(place, kept), to=FLOAT)
    minus, one = literal(-1.0, FLOAT), literal(1.0, FLOAT)
    signs = op.Mul(there, op.Where(above, minus, one))
    weights = op.Concat(op.Unsqueeze(there, whole(1)), op.Unsqueeze(signs, whole(1)), axis=1)
    between = list(range(1, axes - 1 - axis))
    column = op.Unsqueeze(weights, whole(*between)) if between else weights
    gathered = op.Gather(spectrum, op.Min(place, op.Sub(kept, whole(1))), axis=axis)
    return op.Mul(gathered, op.CastLike(column, gathered))


_NONE, _ROOT = 0, 1


def _normalised_as_torch(values: Any, normalization: int, length: Any) -> Any:
    """ONNX divides by the length; torch says whether it wants that, its root, or neither."""
    if normalization not in (_NONE, _ROOT):
        return values
    factor = op.CastLike(op.Reshape(length, whole()), values)
    return op.Mul(values, factor if normalization == _NONE else op.Sqrt(factor))


# ---- ONNX: complex values that torch's translation lacks

# They are real ones with one more axis of two at the end.


def _real_and_imaginary(x: Any) -> tuple[Any, Any]:
    real, imaginary = op.Split(x, axis=-1, num_outputs=2)
    return real, imaginary


def _with_parts(real: Any, imaginary: Any) -> Any:
    return op.Concat(real, imaginary, axis=-1)


def _axis_before_parts(dim: int) -> int:
    """An axis counted from the end stands before the one that is ours."""
    return dim - 1 if dim < 0 else dim


def _product(left: Any, right: Any) -> Any:
    """By a real number both parts are; torch's translation looks for parts in the number, too."""
    for one, other in ((left, right), (right, left)):
        if _is_real(other):
            return op.Mul(one, number(other, one))
    return torchs_translation("core.aten_mul_complex")(left, right)


def _is_real(value: Any) -> bool:
    return isinstance(value, int | float) or (isinstance(value, ir.Value) and rank(value) == 0)


def _quotient(left: Any, right: Any) -> Any:
    """In double: the square of a large divisor is infinite in float32, and that of a small one is zero."""
    if _is_real(right):
        return op.Div(left, number(right, left))
    (a, b), (c, d) = _real_and_imaginary(_wide(left)), _real_and_imaginary(_wide(right))
    size, zero = op.Add(op.Mul(c, c), op.Mul(d, d)), exact(0)
    real = op.Div(op.Add(op.Mul(a, c), op.Mul(b, d)), size)
    imaginary = op.Div(op.Sub(op.Mul(b, c), op.Mul(a, d)), size)
    by_zero = op.Div(_wide(left), zero)
    return op.CastLike(op.Where(op.Equal(size, zero), by_zero, _with_parts(real, imaginary)), right)


def _wide(x: Any) -> Any:
    return op.Cast(x, to=DOUBLE)


def _size(x: ir.Value) -> Any:
    wide = _wide(x)
    return op.CastLike(op.Sqrt(op.ReduceSum(op.Mul(wide, wide), whole(-1), keepdims=0)), x)


def _logarithm(x: ir.Value) -> Any:
    real, imaginary = _real_and_imaginary(x)
    size = op.Unsqueeze(_size(x), whole(-1))
    return _with_parts(op.Log(size), angle_of(imaginary, real))


def _of_both(times: Callable[..., Any], left: ir.Value, right: ir.Value) -> Any:
    """Any product that is linear in both, by those of the parts."""
    (a, b), (c, d) = ([op.Squeeze(part, whole(-1)) for part in _real_and_imaginary(one)] for one in (left, right))
    real, imaginary = op.Sub(times(a, c), times(b, d)), op.Add(times(a, d), times(b, c))
    return _with_parts(op.Unsqueeze(real, whole(-1)), op.Unsqueeze(imaginary, whole(-1)))


def _linear(x: ir.Value, weight: ir.Value, bias: ir.Value | None = None) -> Any:
    result = _of_both(lambda some, others: op.MatMul(some, op.Transpose(others, perm=[1, 0])), x, weight)
    return result if bias is None else op.Add(result, bias)


def _contraction(equation: str, tensors: Sequence[ir.Value], **_path: Any) -> Any:
    if len(tensors) != 2:
        raise NotImplementedError("einsum of others than two complex tensors")
    return _of_both(partial(op.Einsum, equation=equation), *tensors)


def _unsqueeze(x: ir.Value, dim: int) -> Any:
    return op.Unsqueeze(x, whole(_axis_before_parts(dim)))


def _select(x: ir.Value, dim: int, index: Any) -> Any:
    return op.Gather(x, as_scalar(index), axis=_axis_before_parts(dim))


def _expand(x: ir.Value, size: Sequence[Any], **_implicit: Any) -> Any:
    sizes = [1 if isinstance(wish, int) and wish == -1 else wish for wish in size]
    return op.Expand(x, vector([*sizes, 2]))


def _index(x: ir.Value, indices: Sequence[Any]) -> Any:
    if len(indices) != 1 or indices[0] is None or indices[0].dtype == ir.DataType.BOOL:
        raise NotImplementedError("several indices into complex values")
    return op.Gather(x, indices[0], axis=0)


def _exponential(x: ir.Value) -> Any:
    real, imaginary = _real_and_imaginary(x)
    return op.Mul(op.Exp(real), _with_parts(op.Cos(imaginary), op.Sin(imaginary)))


def _power(x: ir.Value, exponent: Any) -> Any:
    if exponent == 2:
        real, imaginary = _real_and_imaginary(x)
        both = op.Mul(real, imaginary)
        return _with_parts(op.Sub(op.Mul(real, real), op.Mul(imaginary, imaginary)), op.Add(both, both))
    raise NotImplementedError(f"complex values to the power of {exponent}")


def _repeat(x: ir.Value, repeats: Sequence[Any]) -> Any:
    new = len(repeats) + 1 - rank(x)
    wide = op.Unsqueeze(x, whole(*range(new))) if new else x
    return op.Tile(wide, vector([*repeats, 1]))


def _filled_under_mask(x: ir.Value, mask: ir.Value, value: Any) -> Any:
    if isinstance(value, complex | ir.Value):
        raise NotImplementedError("complex values filled with others than a real number")
    filler = _with_parts(*(op.Reshape(number(part, x), whole(1)) for part in (value, 0)))
    return op.Where(op.Unsqueeze(mask, whole(-1)), filler, x)


def _pad(x: ir.Value, pad: Sequence[Any], value: Any = 0) -> Any:
    """Torch counts the axes from the last one; the axis that is ours stays as it is."""
    if value != 0:
        raise NotImplementedError("complex values padded with others than zero")
    untouched = [0] * (rank(x) - 1 - len(pad) // 2)
    begins, ends = list(pad[::2])[::-1], list(pad[1::2])[::-1]
    return op.Pad(x, vector([*untouched, *begins, 0, *untouched, *ends, 0]))


TRANSLATIONS: dict[str, Callable[..., Any]] = {
    f"{COMPLEX}aten::_fft_c2r": _to_real,
    f"{COMPLEX}aten::resolve_conj": op.Identity,
    f"{COMPLEX}aten::mul.Tensor": _product,
    f"{COMPLEX}aten::div.Tensor": _quotient,
    f"{COMPLEX}aten::abs": _size,
    f"{COMPLEX}aten::log": _logarithm,
    f"{COMPLEX}aten::linear": _linear,
    f"{COMPLEX}aten::einsum": _contraction,
    **{f"{COMPLEX}aten::{name}": partial(_of_both, op.MatMul) for name in ("mm", "bmm", "mv")},
    f"{COMPLEX}aten::unsqueeze": _unsqueeze,
    f"{COMPLEX}aten::select.int": _select,
    f"{COMPLEX}aten::expand": _expand,
    f"{COMPLEX}aten::index.Tensor": _index,
    f"{COMPLEX}aten::exp": _exponential,
    f"{COMPLEX}aten::pow.Tensor_Scalar": _power,
    f"{COMPLEX}aten::repeat": _repeat,
    f"{COMPLEX}aten::masked_fill.Scalar": _filled_under_mask,
    f"{COMPLEX}aten::constant_pad_nd": _pad,
}
