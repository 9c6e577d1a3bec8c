"""Where samples meet: the first call whose result for a whole batch is not put together from those of its parts.

The model is followed three times, on the whole and on each part. A result is healthy where it is that of the parts side
by side along some axis, or the same in all three. Where it is neither, although what went in was healthy, samples meet;
what is computed from it inherits the place, until a result is healthy again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch

from anyshape.torchkit.recorder import Call

Partners = tuple[Call | None, Call | None]
_SHAPING = ("view", "reshape", "flatten", "unflatten", "unfold", "chunk", "split", "view_as", "reshape_as")
"""Their shapes do not depend on values: a shape that fits no part is their own doing."""
_UNWRITTEN = ("empty", "new_empty", "empty_like", "empty_strided")


@dataclass(frozen=True)
class Split:
    """How many samples each part has, and which part of the largest value is no difference."""

    first: int
    second: int
    tolerance: float

    @property
    def total(self) -> int:
        return self.first + self.second


def places(whole: Sequence[Call], parts: tuple[Sequence[Call], Sequence[Call]], split: Split) -> Mapping[int, Call]:
    """For every result in which samples are mixed, by identity: the call where they met first."""
    partners = _partners(whole, parts, split)
    met: dict[int, int] = {}
    for index, call in enumerate(whole):
        inherited = min((met[id(tensor)] for tensor in call.arguments if id(tensor) in met), default=None)
        for number, result in enumerate(call.results):
            fits = _fits_partners(call, number, partners.get(index), split)
            if fits:
                met.pop(id(result), None)
            elif inherited is not None:
                met[id(result)] = inherited
            elif fits is False:
                met[id(result)] = index
    return {identity: whole[index] for identity, index in met.items()}


def _fits_partners(call: Call, number: int, partners: Partners | None, split: Split) -> bool | None:
    """Whether a result is healthy; None where that cannot be told."""
    if partners is None or not call.values or call.name in _UNWRITTEN:
        return None
    one, two = (None if partner is None else _value_of_result(partner, number) for partner in partners)
    whole = call.values[number]
    if one is not None and two is not None:
        fits = fits_parts(whole, one, two, split)
        return False if fits is None and call.name in _SHAPING else fits
    alone = one if one is not None else two
    return None if alone is None else alone.shape == whole.shape and close(whole, alone, split.tolerance)


def _value_of_result(call: Call, number: int) -> torch.Tensor | None:
    return call.values[number] if number < len(call.values) else None


# ---- which calls of the parts belong to a call of the whole


def _partners(whole: Sequence[Call], parts: tuple[Sequence[Call], Sequence[Call]], split: Split) -> dict[int, Partners]:
    """By place and order; a loop over samples has as many calls in the whole as in both parts."""
    found: dict[int, Partners] = {}
    ones, twos = _indices_by_place(parts[0]), _indices_by_place(parts[1])
    for key, indices in _indices_by_place(whole).items():
        first = [parts[0][i] for i in ones.get(key, [])]
        second = [parts[1][i] for i in twos.get(key, [])]
        if len(indices) == len(first) == len(second):
            found |= dict(zip(indices, zip(first, second, strict=True), strict=True))
            continue
        ways = [dict(zip(indices, way, strict=True)) for way in _loop_pairings(len(indices), first, second, split)]
        healthy = [sum(_fits_partners(whole[i], 0, pair, split) is True for i, pair in way.items()) for way in ways]
        if ways:
            found |= ways[healthy.index(max(healthy))]
    return found


def _indices_by_place(calls: Sequence[Call]) -> dict[tuple[object, str], list[int]]:
    found: dict[tuple[object, str], list[int]] = {}
    for index, call in enumerate(calls):
        if call.values:
            found.setdefault((call.span, call.name), []).append(index)
    return found


def _loop_pairings(count: int, first: Sequence[Call], second: Sequence[Call], split: Split) -> Iterator[list[Partners]]:
    """The calls of the parts in the order of the whole, for each depth at which the loop over samples may stand."""
    for outer, inner in _ways_around_samples(count, len(first), len(second), split):
        ones = torch.arange(len(first)).view(outer, split.first, inner)
        twos = -1 - torch.arange(len(second)).view(outer, split.second, inner)
        order = torch.cat((ones, twos), 1).flatten().tolist()
        yield [(first[i], None) if i >= 0 else (None, second[-1 - i]) for i in order]


# ---- one tensor of the whole, and those of the parts


def fits_parts(whole: torch.Tensor, one: torch.Tensor, two: torch.Tensor, split: Split) -> bool | None:
    """Whether it is the parts side by side, or the same as both; None where shapes depend on more than the batch."""
    if not whole.dim() == one.dim() == two.dim():
        return None
    axes = moving_axes(whole, one, two)
    if not axes:
        return close(whole, one, split.tolerance) and close(whole, two, split.tolerance)
    if len(axes) > 1:
        return _fits_blocks(whole, one, two, axes, split)
    (axis,) = axes
    sizes = whole.shape[axis], one.shape[axis], two.shape[axis]
    ways = list(_ways_around_samples(*sizes, split))
    for outer, inner in ways:
        if close(whole, _parts_woven(one, two, axis, outer, inner, split), split.tolerance):
            return True
    if not ways and sizes[0] == sizes[1] + sizes[2]:
        return close(whole, torch.cat((one, two), axis), split.tolerance) or None
    return False if ways else None


def moving_axes(whole: torch.Tensor, one: torch.Tensor, two: torch.Tensor) -> list[int]:
    shapes = zip(whole.shape, one.shape, two.shape, strict=True)
    return [axis for axis, sizes in enumerate(shapes) if any(a != b for a, b in pairwise(sizes))]


def _ways_around_samples(whole: int, one: int, two: int, split: Split) -> Iterator[tuple[int, int]]:
    """What may stand around the samples on an axis that holds more than them: (heads, samples, steps) in one."""
    times = whole // split.total
    if (whole, one, two) == (times * split.total, times * split.first, times * split.second):
        yield from ((outer, times // outer) for outer in range(1, times + 1) if times % outer == 0)


def _parts_woven(one: torch.Tensor, two: torch.Tensor, axis: int, outer: int, inner: int, split: Split) -> torch.Tensor:
    before, after = one.shape[:axis], one.shape[axis + 1 :]
    ones = one.reshape(*before, outer, split.first, inner, *after)
    twos = two.reshape(*before, outer, split.second, inner, *after)
    return torch.cat((ones, twos), axis + 1).flatten(axis, axis + 2)


def _fits_blocks(
    whole: torch.Tensor, one: torch.Tensor, two: torch.Tensor, axes: Sequence[int], split: Split
) -> bool | None:
    """Something of every pair of samples: those of one part are to be the same as without the other."""
    upper, lower = whole, whole
    for axis in axes:
        if (whole.shape[axis], one.shape[axis], two.shape[axis]) != (split.total, split.first, split.second):
            return None
        upper = upper.narrow(axis, 0, split.first)
        lower = lower.narrow(axis, split.first, split.second)
    return close(upper, one, split.tolerance) and close(lower, two, split.tolerance)


def close(value: torch.Tensor, other: torch.Tensor, tolerance: float) -> bool:
    """Whether all is equal, up to this part of the largest value."""
    if value.shape != other.shape:
        return False
    return bool((distance(value, other) <= tolerance * scale(value)).all())


def distance(value: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """How far apart, elementwise; NaN is no distance, and infinite values are equal or infinitely far."""
    kind = torch.complex128 if value.is_complex() else torch.float64
    apart = other.to(kind, copy=True).neg_().add_(value.to(kind)).abs()
    return apart.masked_fill_(value == other, 0.0).nan_to_num_(0.0, posinf=float("inf"))


def scale(value: torch.Tensor) -> float:
    """The largest finite value."""
    if not value.is_floating_point():  # of which each has its own magnitude
        value = value.to(torch.complex128 if value.is_complex() else torch.float64)
    return float(value.abs().nan_to_num_(0.0, 0.0, 0.0).max()) if value.numel() else 0.0
