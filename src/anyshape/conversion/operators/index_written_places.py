"""A write to a place that a value gives: `cache[:, position] = key`, `cache[:, at : at + 1] = key`.

Recognised: `x[...] = value` with one integer tensor without axes as a place or as a bound of a slice, beside plain
slices and numbers. Torch reads it into Python, and then decides by its value. Put there: all places of that axis are
numbered, and those that the tensor names take the value. That is the same for every place, counted from either end.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from anyshape.conversion.operators.repair import Repair, Used
from anyshape.conversion.operators.repair_answering import answered


def _is_place(part: Any) -> bool:
    whole = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
    return isinstance(part, Tensor) and part.ndim == 0 and part.dtype in whole


def _is_range(part: Any) -> bool:
    bounded = isinstance(part, slice) and part.step in (None, 1)
    return bounded and (_is_place(part.start) or _is_place(part.stop))


def _is_plain(part: Any) -> bool:
    if isinstance(part, slice):
        return not any(isinstance(bound, Tensor) for bound in (part.start, part.stop, part.step))
    return part is None or part is Ellipsis or (isinstance(part, (int, torch.SymInt)) and not isinstance(part, bool))


def _axis_of(parts: Sequence[Any], chosen: int, view: Tensor) -> int:
    """The axis of the view that stands for the chosen part; what is behind an ellipsis is counted from the end."""
    before, after = parts[:chosen], parts[chosen + 1 :]
    if Ellipsis in before:
        return view.ndim - 1 - sum(isinstance(part, slice) or part is None for part in after)
    return sum(isinstance(part, slice) or part is None for part in before)


def _from_start(bound: Any, length: Any, otherwise: Any) -> Any:
    """A bound of a slice as a place counted from the start."""
    if bound is None:
        return otherwise
    bound = bound if isinstance(bound, Tensor) else torch.full((), bound, dtype=torch.int64)
    return torch.where(bound < 0, bound + length, bound).clamp(min=0)


def _write(view: Tensor, axis: int, part: Any, value: Any) -> None:
    length = view.shape[axis]
    places = torch.arange(length, device=view.device)
    if not isinstance(value, Tensor):
        value = torch.full((), value, dtype=view.dtype, device=view.device)
    if isinstance(part, slice):
        first, end = _from_start(part.start, length, 0), _from_start(part.stop, length, length)
        written = (places >= first) & (places < end)
        spread = _laid_out(value, view, axis, places - first)
    else:
        written = places == torch.where(part < 0, part + length, part)
        # the axis of a single place is not in the value
        spread = value if value.ndim < view.ndim - axis else value.unsqueeze(value.ndim - (view.ndim - 1 - axis))
    at = written.reshape([-1 if a == axis else 1 for a in range(view.ndim)])
    view.copy_(torch.where(at, spread.to(view.dtype), view))


def _laid_out(value: Tensor, view: Tensor, written_axis: int, index: Tensor) -> Tensor:
    """The value with its own run of places moved to where it is written; what broadcasts stays as it is."""
    own = value.ndim - (view.ndim - written_axis)
    if own < 0 or (isinstance(value.shape[own], int) and value.shape[own] == 1):
        return value
    # one more, so that a value without any place can be numbered, too
    more = value.new_zeros([1 if axis == own else size for axis, size in enumerate(value.shape)])
    return torch.cat([value, more], dim=own).index_select(own, index.clamp(0, value.shape[own]))


@contextlib.contextmanager
def _apply(used: Used) -> Iterator[None]:
    def answer(x: Tensor, place: Any, value: Any) -> Any:
        parts = place if isinstance(place, tuple) else (place,)
        chosen = [i for i, part in enumerate(parts) if _is_place(part) or _is_range(part)]
        if len(chosen) != 1 or not all(_is_plain(part) for i, part in enumerate(parts) if i != chosen[0]):
            return NotImplemented
        used("x[place] = value: the place by its value at run time")
        view = x[tuple(slice(None) if i == chosen[0] else part for i, part in enumerate(parts))]
        _write(view, _axis_of(parts, chosen[0], view), parts[chosen[0]], value)
        return None

    with answered({(Tensor, "__setitem__"): answer}):
        yield


WRITTEN_PLACES = Repair("written places", _apply)
