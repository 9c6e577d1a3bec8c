"""`torch.istft(..., length=n)` and `torch.fft.rfftfreq(n)` with a length that is a size.

Recognised: an inverse short-time Fourier transform cut or filled up to a symbolic length; torch's operator takes a
plain number there, which pins it. Put there: what the operator does, step by step: every frame back to samples, times
the window, added where it belongs, divided by the windows' squares added likewise, cut out. The frequencies of a
transform are counted and divided by its length.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  everybody's name for it
from torch import SymInt, Tensor

from anyshape.conversion.operators.repair import Repair, Used
from anyshape.conversion.operators.repair_answering import answered

_counted: Callable[..., Tensor] = torch.arange
_padded: Callable[..., Tensor] = F.pad  # typed for plain numbers


def _whole_window(window: Tensor | None, win_length: int, n_fft: int, like: Tensor) -> Tensor:
    values = torch.ones(win_length, dtype=like.dtype, device=like.device) if window is None else window
    left = (n_fft - win_length) // 2
    return F.pad(values, (left, n_fft - win_length - left))


def _joined(frames: Tensor, hop: int) -> Tensor:
    """(batch, frames, samples) -> (batch, time): each frame is added where it belongs."""
    many, samples = frames.shape[1], frames.shape[2]
    total = samples + hop * (many - 1)
    joined = F.fold(frames.transpose(1, 2), (1, total), (1, samples), stride=(1, hop))
    return joined.reshape(frames.shape[0], total)


def _inverse(used: Used) -> Callable[..., Any]:
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
        if not isinstance(length, SymInt) or return_complex:
            return NotImplemented
        used("torch.istft: cut to the size at run time")
        hop, sided = hop_length or n_fft // 4, onesided is not False and input.shape[-2] != n_fft
        spectrum = (input if input.ndim == 3 else input.unsqueeze(0)).transpose(1, 2)
        frames = torch.fft.irfft(spectrum, n=n_fft) if sided else torch.fft.ifft(spectrum, n=n_fft).real
        frames = frames * n_fft**0.5 if normalized else frames
        values = _whole_window(window, win_length or n_fft, n_fft, frames)
        squares = (values * values).expand_as(frames[:1])
        start = n_fft // 2 if center else 0
        signal = _padded(_joined(frames * values, hop), (0, length))[:, start : start + length]
        weight = _padded(_joined(squares, hop), (0, length), value=1.0)[:, start : start + length]
        result = signal / weight
        return result if input.ndim == 3 else result.squeeze(0)

    return answer


def _frequencies(used: Used, *, halved: bool) -> Callable[..., Any]:
    """0, 1, 2, ... over the length; in whole spectra, those from the middle on are negative."""

    def answer(n: Any, d: float = 1.0, **options: Any) -> Any:
        if not isinstance(n, SymInt):
            return NotImplemented
        used("torch.fft frequencies: by the size at run time")
        length: Any = n
        index = _counted(length // 2 + 1 if halved else length, **options)
        signed = index if halved else torch.where(index < (length + 1) // 2, index, index - length)
        return signed / (length * d)

    return answer


@contextlib.contextmanager
def _apply(used: Used) -> Iterator[None]:
    answer = _inverse(used)
    places = {
        (torch, "istft"): answer,
        (Tensor, "istft"): answer,
        (torch.fft, "fftfreq"): _frequencies(used, halved=False),
        (torch.fft, "rfftfreq"): _frequencies(used, halved=True),
    }
    with answered(places):
        yield


SPECTRA = Repair("inverse spectra", _apply)
