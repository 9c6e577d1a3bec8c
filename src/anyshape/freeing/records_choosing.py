"""Ambiguous places: each has its readings in order of likelihood, and a plan says which one to take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")
_MOST_READINGS = 8


class Chooser:
    """Takes the readings that a plan names, the likeliest one beyond it, and remembers how many there were."""

    def __init__(self, plan: Sequence[int]) -> None:
        self._plan = plan
        self.counts: list[int] = []
        self.taken: list[int] = []

    def choose(self, readings: Sequence[T]) -> T:
        """One reading is no choice, and is not counted."""
        readings = readings[:_MOST_READINGS]
        if len(readings) == 1:
            return readings[0]
        place = len(self.counts)
        pick = self._plan[place] if place < len(self._plan) else 0
        pick = pick if 0 <= pick < len(readings) else 0
        self.counts.append(len(readings))
        self.taken.append(pick)
        return readings[pick]


def next_plan(chooser: Chooser, fixed: int) -> tuple[int, ...] | None:
    """The plan after a contradiction: the last place that has another reading takes it; the first `fixed` stay."""
    for place in range(len(chooser.counts) - 1, fixed - 1, -1):
        if chooser.taken[place] + 1 < chooser.counts[place]:
            return (*chooser.taken[:place], chooser.taken[place] + 1)
    return None
