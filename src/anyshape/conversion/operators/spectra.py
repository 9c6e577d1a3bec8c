"""Spectra whose length is a size: `torch.istft(..., length=n)`, `torch.fft.rfftfreq(n)`, `torch.fft.irfft(x, n)`.

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
from contextlib import AbstractContextManager
from typing import Any

import onnx_ir as ir
import torch
import torch.nn.functional as F  # noqa: N812  everybody's name for it
from torch import Tensor

from anyshape.conversion.operators.onnx_words import COMPLEX, FLOAT, as_vector, counted, op, rank, size_of, whole
from anyshape.conversion.operators.repair import Answer, Repair, Used, answered, arange, is_size

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


def _inverse_by_size(used: Used) -> Answer:
    def answer(
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

    return answer


def _frequencies(used: Used, *, halved: bool) -> Answer:
    """0, 1, 2, ... over the length; in whole spectra, those from the middle on are negative."""

    def answer(n: Any, d: float = 1.0, **options: Any) -> Any:
        if not is_size(n):
            return NotImplemented
        used("torch.fft frequencies: by the size at run time")
        length: Any = n
        index = arange(length // 2 + 1 if halved else length, **options)
        signed = index if halved else torch.where(index < (length + 1) // 2, index, index - length)
        return signed / (length * d)

    return answer


def _spectra_by_size(used: Used) -> AbstractContextManager[None]:
    answer = _inverse_by_size(used)
    places = {
        (torch, "istft"): answer,
        (Tensor, "istft"): answer,
        (torch.fft, "fftfreq"): _frequencies(used, halved=False),
        (torch.fft, "rfftfreq"): _frequencies(used, halved=True),
    }
    return answered(places)


SPECTRA = Repair("inverse spectra", _spectra_by_size)


# ---- ONNX


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
    minus, one = (op.Constant(value=ir.tensor(value, dtype=FLOAT)) for value in (-1.0, 1.0))
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


TRANSLATIONS: dict[str, Callable[..., Any]] = {f"{COMPLEX}aten::_fft_c2r": _to_real}
