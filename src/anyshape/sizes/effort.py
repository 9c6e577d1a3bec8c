"""How much work a run is: counted at a few small sizes and predicted from them, so that no load of a machine shows.

Work is counted in elements that are computed. Where matrices are multiplied, many pairs of numbers belong to each of
them, which processors do fast; and to call an operator at all costs as much as some thousand elements.
"""

from __future__ import annotations

import functools
import math
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from anyshape.sizes import budgets
from anyshape.sizes.notation import Sizes

# ---- of one run


@dataclass(frozen=True)
class Effort:
    """What a run takes."""

    computed: float = 0.0
    calls: float = 0.0
    """Of operators."""
    largest: Mapping[str, float] = field(default_factory=dict)
    """Operator -> bytes of its largest result: what is largest at a small size need not be so at a large one."""

    @property
    def work(self) -> float:
        return self.computed + self.calls * budgets.WORK_OF_A_CALL

    @property
    def bytes_held(self) -> float:
        """What a check needs at a time: some results that are as large as the largest."""
        return max(self.largest.values(), default=0.0) * budgets.RESULTS_HELD

    def with_values(self, what: str, elements: int) -> Effort:
        """And of making, widening and comparing what goes in or comes out."""
        largest = {**self.largest, what: 8 * elements}
        return Effort(self.computed + elements * budgets.WORK_OF_A_VALUE, self.calls, largest)

    def times(self, count: float) -> Effort:
        """So many runs, one after the other."""
        return Effort(self.computed * count, self.calls * count, self.largest)


Shape = Sequence[int]
OperatorShapes = tuple[str, Sequence[Shape], Sequence[Shape], int]
"""An operator, the shapes that it takes, those that it computes, and the bytes of each number."""
_PRODUCTS_AT_ONCE = 32
"""In the time in which one element is computed and stored."""


def effort_of(calls: Iterable[OperatorShapes]) -> Effort:
    """Of a run that makes these calls."""
    computed, largest = 0.0, Counter[str]()
    calls = list(calls)
    for name, inputs, outputs, width in calls:
        kind = name.lower()
        elements = [math.prod(shape) for shape in (*outputs, *_scores(kind, inputs))]
        computed += sum(elements) + (_products(kind, inputs, outputs[0]) / _PRODUCTS_AT_ONCE if outputs else 0)
        largest[kind] = max(largest[kind], width * max(elements, default=0))
    return Effort(computed, len(calls), largest)


def _scores(kind: str, inputs: Sequence[Shape]) -> list[Shape]:
    """What attention computes for each pair of places, and its softmax: if not in torch, in a file or in float64."""
    is_attention = "attention" in kind and len(inputs) > 1 and min(len(inputs[0]), len(inputs[1])) > 1
    return [(*inputs[0][:-1], inputs[1][-2])] * 2 if is_attention else []


def _products(kind: str, inputs: Sequence[Shape], output: Shape) -> float:
    """How many numbers are multiplied in pairs, by operators that do little else."""
    if not inputs or not all(inputs[:2]):
        return 0
    if "mm" in kind or "matmul" in kind:  # what is added to the product comes first in torch's operators
        return math.prod(output) * inputs[1 if "add" in kind and len(inputs) > 2 else 0][-1]
    if len(inputs) < 2:
        return 0
    if "attention" in kind and len(inputs[0]) > 1:
        return 2 * inputs[0][-2] * math.prod(inputs[1])
    if "conv" in kind:
        return math.prod(output) * math.prod(inputs[1][1:])
    is_recurrent = any(word in kind for word in ("rnn", "lstm", "gru"))
    return math.prod(inputs[0][:-1]) * sum(map(math.prod, inputs[1:3])) if is_recurrent else 0


# ---- at other sizes than those that were counted

_Points = Sequence[tuple[float, Effort]]
"""By how much some dims grew together, and what a run took then."""


class Forecast:
    """What runs take at any sizes: counted at the first question, at the base and where each dim moves alone."""

    def __init__(self, count: Callable[[Sizes], Effort | None], base: Sizes) -> None:
        """`count` gives None where there is no run."""
        self._count, self._base = count, dict(base)
        self._first: Effort | None = None
        self._curves: dict[tuple[str, ...], _Points] | None = None
        self._share = 1.0
        """Of what dims add to a run, the part that they add by multiplying each other."""
        self._predicted: dict[tuple[int, ...], Effort] = {}

    def at(self, sizes: Sizes) -> Effort | None:
        """None where nothing could be counted."""
        if self._curves is None:
            self._first, self._curves = self._count(self._base), {}
            if self._first is not None:
                self._learn(self._first)
        if self._first is None:
            return None
        key = tuple(sizes[dim] for dim in self._base)
        if key not in self._predicted:  # a size is asked for when it is planned, run and charged
            places = self._places_of(sizes)
            largest = {kind: self._number(partial(_bytes_of, kind), places) for kind in self._unlike_kinds}
            computed, calls = self._number(_computed_by, places), self._number(_calls_of, places)
            self._predicted[key] = Effort(computed, calls, largest)
        return self._predicted[key]

    @functools.cached_property
    def _unlike_kinds(self) -> list[str]:
        """Of the operators whose largest results were alike in all runs that were counted, one each."""
        assert self._first is not None
        counted = [self._first, *(effort for points in (self._curves or {}).values() for _, effort in points)]
        return list({tuple(_bytes_of(kind, one) for one in counted): kind for kind in self._first.largest}.values())

    def _learn(self, first: Effort) -> None:
        alone = {(dim,): self._points((dim,), first) for dim in self._base}
        self._curves = {dims: points for dims, points in alone.items() if len(points) > 1}
        if still := tuple(dim for (dim,) in alone if (dim,) not in self._curves):
            self._curves[still] = self._points(still, first)  # those that move only together, or not at all
        # as little as tells: where dims multiply each other, a run of all of them moved far is much work
        steps = {dims: next((x for x, _ in points if x > 1), 1.0) for dims, points in self._curves.items()}
        moved = {dim: self._size(dim, step) for dims, step in steps.items() for dim in dims}
        places = self._places_of(moved)
        multiplied = self._number(_computed_by, places)
        self._share = 0.0
        added = self._number(_computed_by, places)
        counted = self._count(moved) if added < multiplied <= budgets.MUCH_WORK else None
        self._share = 1.0 if counted is None else (counted.computed - added) / (multiplied - added)
        self._share = min(max(self._share, 0.0), 1.0)

    def _size(self, dim: str, factor: float) -> int:
        return max(round(self._base[dim] * factor), 1)

    def _points(self, dims: tuple[str, ...], first: Effort) -> _Points:
        """Up to three: larger ones where a run is little work, smaller ones where it is much."""
        found = {1.0: first}
        for factor in (2.0, 4.0, 0.5, 0.25) if first.work <= budgets.LITTLE_WORK else (0.5, 0.25, 2.0):
            sizes = {**self._base, **{dim: self._size(dim, factor) for dim in dims}}
            grown = sizes[dims[0]] / max(self._base[dims[0]], 1)
            if len(found) < 3 and grown not in found and (counted := self._count(sizes)) is not None:
                found[grown] = counted
        return sorted(found.items())

    def _places_of(self, sizes: Sizes) -> list[tuple[_Place, list[Effort]]]:
        """Where these sizes stand on each curve, whatever is read there."""
        return [
            (
                _Place.at([x for x, _ in points], max(sizes[dim] / max(self._base[dim], 1) for dim in dims)),
                [effort for _, effort in points],
            )
            for dims, points in (self._curves or {}).items()
        ]

    def _number(self, of: Callable[[Effort], float], places: Iterable[tuple[_Place, list[Effort]]]) -> float:
        """One number of an effort: what the dims add to it, and by how much they multiply it."""
        assert self._first is not None
        base = of(self._first)
        moved = [place.read_off([of(effort) for effort in points]) for place, points in places]
        added = base + sum(one - base for one in moved)
        multiplied = base * math.prod(one / base for one in moved) if base else added
        return max((1 - self._share) * added + self._share * multiplied, 0.0)


_computed_by, _calls_of = operator.attrgetter("computed"), operator.attrgetter("calls")


def _bytes_of(kind: str, effort: Effort) -> float:
    return effort.largest.get(kind, 0.0)


@dataclass(frozen=True)
class _Place:
    """A place on curves through points above these `xs`."""

    xs: Sequence[float]
    x: float
    weights: Sequence[float]
    """Of each point, on the parabola."""

    @classmethod
    def at(cls, xs: Sequence[float], x: float) -> _Place:
        return cls(xs, x, [math.prod((x - b) / (a - b) for b in xs if b != a) for a in xs])

    def read_off(self, ys: Sequence[float]) -> float:
        """What stands on the parabola through these points; beyond the last at least as steep as before it."""
        x, xs = self.x, self.xs
        value = sum(y * weight for y, weight in zip(ys, self.weights, strict=True))
        if x <= xs[-1]:
            return min(max(value, min(ys) * min(x / xs[0], 1.0)), max(ys))
        if len(xs) == 1:
            return ys[0] * (x / xs[0]) ** 2  # as attention grows: to be wrong the other way would cost the user's time
        steepness: float = math.log(ys[-1] / ys[-2]) / math.log(xs[-1] / xs[-2]) if ys[-1] > ys[-2] > 0 else 0.0
        return max(value, float(ys[-1] * (x / xs[-1]) ** steepness))
