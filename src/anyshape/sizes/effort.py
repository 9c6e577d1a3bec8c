"""How much work a run is: counted at a few small sizes and predicted from them, so that no load of a machine shows.

Work is counted in elements that are computed. Where matrices are multiplied, many pairs of numbers belong to each of
them, which processors do fast; and to call an operator at all costs as much as some thousand elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass

from anyshape.sizes import budgets
from anyshape.sizes.notation import Sizes

# ---- of one run


@dataclass(frozen=True)
class Effort:
    """What a run takes."""

    work: float = 0.0
    largest: float = 0.0
    """Bytes of its largest result."""
    calls: float = 0.0
    """Of operators."""

    def times(self, count: float) -> Effort:
        """So many runs, one after the other."""
        return Effort(self.work * count, self.largest, self.calls * count)


Shape = Sequence[int]


@dataclass(frozen=True)
class OperatorCall:
    """An operator with the shapes that it takes and gives; nothing is given where memory is only looked at anew."""

    name: str
    inputs: Sequence[Shape]
    outputs: Sequence[Shape]
    width: int = 4
    """Bytes of each number."""


_PRODUCTS_AT_ONCE = 32
"""In the time in which one element is computed and stored."""


def effort_of(calls: Iterable[OperatorCall]) -> Effort:
    """Of a run that makes these calls."""
    work, largest, count = 0.0, 0, 0
    for call in calls:
        elements = [math.prod(shape) for shape in call.outputs]
        work += budgets.WORK_OF_A_CALL + sum(elements) + _products(call) / _PRODUCTS_AT_ONCE
        largest, count = max(largest, call.width * max(elements, default=0)), count + 1
    return Effort(work, largest, count)


def _products(call: OperatorCall) -> float:
    """How many numbers are multiplied in pairs, by operators that do little else."""
    name, inputs = call.name.lower(), call.inputs
    if not call.outputs or not inputs or not all(inputs[:2]):
        return 0
    elements = math.prod(call.outputs[0])
    if "mm" in name or "matmul" in name:  # what is added to the product comes first in torch's operators
        return elements * inputs[1 if "add" in name and len(inputs) > 2 else 0][-1]
    if len(inputs) < 2:
        return 0
    if "attention" in name and len(inputs[0]) > 1:
        return 2 * inputs[0][-2] * math.prod(inputs[1])
    if "conv" in name:
        return elements * math.prod(inputs[1]) / inputs[1][0] if inputs[1][0] else 0
    is_recurrent = any(word in name for word in ("rnn", "lstm", "gru"))
    return math.prod(inputs[0][:-1]) * sum(math.prod(shape) for shape in inputs[1:3]) if is_recurrent else 0


# ---- at other sizes than those that were counted

_Points = Sequence[tuple[float, Effort]]
"""By how much some dims grew together, and what a run took then."""


class Forecast:
    """What runs take at any sizes: counted at the first question, at the base and where each dim moves alone."""

    def __init__(self, count: Callable[[Sizes], Effort | None], base: Sizes, admits: Callable[[Sizes], bool]) -> None:
        """`count` gives None where there is no run; it is asked only where sizes are admitted."""
        self._count, self._base, self._admits = count, dict(base), admits
        self._first: Effort | None = None
        self._curves: dict[tuple[str, ...], _Points] | None = None
        self._share = 1.0
        """Of what dims add to a run, the part that they add by multiplying each other."""

    def at(self, sizes: Sizes) -> Effort | None:
        """None where nothing could be counted."""
        if self._curves is None:
            self._first, self._curves = self._count(self._base), {}
            if self._first is not None:
                self._learn(self._first)
        return None if self._first is None else self._mixed(self._first, sizes, self._share)

    def _learn(self, first: Effort) -> None:
        alone = {(dim,): self._points((dim,), first) for dim in self._base}
        self._curves = {dims: points for dims, points in alone.items() if len(points) > 1}
        if still := tuple(dim for (dim,) in alone if (dim,) not in self._curves):
            self._curves[still] = self._points(still, first)  # those that move only together, or not at all
        moved = {dim: self._scaled(dim, points[-1][0]) for dims, points in self._curves.items() for dim in dims}
        added, multiplied = (self._mixed(first, moved, share).work for share in (0.0, 1.0))
        if added < multiplied <= budgets.MUCH_WORK and self._admits(moved):
            counted = self._count(moved)
            self._share = 1.0 if counted is None else min(max((counted.work - added) / (multiplied - added), 0.0), 1.0)

    def _scaled(self, dim: str, factor: float) -> int:
        return max(round(self._base[dim] * factor), 1)

    def _points(self, dims: tuple[str, ...], first: Effort) -> _Points:
        """Up to three: larger ones where a run is little work, smaller ones where it is much."""
        found = {1.0: first}
        for factor in (2.0, 4.0, 0.5, 0.25) if first.work <= budgets.LITTLE_WORK else (0.5, 0.25, 2.0):
            sizes = {**self._base, **{dim: self._scaled(dim, factor) for dim in dims}}
            grown = sizes[dims[0]] / max(self._base[dims[0]], 1)
            if len(found) < 3 and grown not in found and self._admits(sizes):
                counted = self._count(sizes)
                found |= {} if counted is None else {grown: counted}
        return sorted(found.items())

    def _mixed(self, first: Effort, sizes: Sizes, share: float) -> Effort:
        """Each number of an effort: what the dims add to it, and by how much they multiply it."""
        read = []
        for dims, points in (self._curves or {}).items():
            grown = max(sizes[dim] / max(self._base[dim], 1) for dim in dims)
            columns = zip(*(astuple(effort) for _, effort in points), strict=True)
            read.append([_read_off([x for x, _ in points], column, grown) for column in columns])
        numbers = []
        for number, base in enumerate(astuple(first)):
            moved = [row[number] for row in read]
            added = base + sum(one - base for one in moved)
            multiplied = base * math.prod(one / base for one in moved) if base else added
            numbers.append(max((1 - share) * added + share * multiplied, 0.0))
        return Effort(*numbers)


def _read_off(xs: Sequence[float], ys: Sequence[float], x: float) -> float:
    """What stands on the parabola through these points; beyond the last at least as steep as before it."""
    value = sum(y * math.prod((x - b) / (a - b) for b in xs if b != a) for a, y in zip(xs, ys, strict=True))
    if x <= xs[-1]:
        return min(max(value, min(ys) * min(x / xs[0], 1.0)), max(ys))
    if len(xs) == 1:
        return ys[0] * (x / xs[0]) ** 2  # as attention grows: to be wrong the other way would cost the user's time
    steepness: float = math.log(ys[-1] / ys[-2]) / math.log(xs[-1] / xs[-2]) if ys[-1] > ys[-2] > 0 else 0.0
    return max(value, float(ys[-1] * (x / xs[-1]) ** steepness))
