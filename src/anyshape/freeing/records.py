"""What goes into the freeing of a file and what comes out of it: axes, dims, readings, changes, limits, refusals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import onnx_ir as ir

from anyshape.errors import AnyshapeError
from anyshape.sizes import budgets
from anyshape.sizes.expressions import Size, dim_symbol, evaluated


@dataclass(frozen=True)
class Rewrite:
    """One node that was changed, and how."""

    node: str
    operator: str
    what: str


@dataclass(frozen=True)
class Bound:
    """A limit that remains: beyond it, the runtime raises an error."""

    dim: str
    most: int
    why: str


@dataclass(frozen=True)
class Freed:
    """A new model whose axes are free; nothing has been checked yet."""

    model: ir.Model
    sizes: Mapping[str, int]
    """What each dim was in the file."""
    rewrites: tuple[Rewrite, ...]
    bounds: tuple[Bound, ...]
    outputs: tuple[tuple[str | None, ...], ...]
    """The true size of each axis of each output: `batch`, `2*seq + 1`, `16`; None where nobody knows."""
    choices: tuple[int, ...]
    """How many readings each ambiguous place had, in the order of the walk."""
    taken: tuple[int, ...]
    """Which of them stands in the model; a reading that led to a contradiction was left by itself."""
    suspects: tuple[Any, ...] = ()
    """Numbers that may follow from a freed size, as `suspects.py` has them."""


SETTLED = "anyshape.settled"
"""Under this key a node knows for which of its inputs the user has said what they are."""


# ---- refusals


class PinnedError(AnyshapeError):
    """A node holds a dim to its size in the file, and no rule frees it."""

    def __init__(self, sentence: str, *, node: str = "", operator: str = "", dim: str | None = None) -> None:
        super().__init__(sentence)
        self.node, self.operator, self.dim = node, operator, dim


class DisagreeingError(PinnedError):
    """Two sizes that must be equal are so at the file's sizes, but not at every size: a wrong reading, or a limit."""


State = tuple[str, int]
"""An initial state of a loop: the node's name and which of its inputs."""


class StatePinnedError(PinnedError):
    """The initial state of a loop is too small for its rounds: the walk starts again with a larger one."""

    def __init__(self, trouble: PinnedError, state: State, wants: Mapping[int, Any]) -> None:
        super().__init__(str(trouble), node=trouble.node, operator=trouble.operator, dim=trouble.dim)
        self.state, self.wants = state, wants


# ---- ambiguous places: each has its readings in order of likelihood, and a plan says which one to take

T = TypeVar("T")


class Chooser:
    """Takes the readings that a plan names, the likeliest one beyond it, and remembers how many there were."""

    def __init__(self, plan: Sequence[int]) -> None:
        self._plan = plan
        self.counts: list[int] = []
        self.taken: list[int] = []

    def choose(self, readings: Sequence[T]) -> T:
        """One reading is no choice, and is not counted."""
        readings = readings[: budgets.MOST_READINGS_OF_A_PLACE]
        if len(readings) == 1:
            return readings[0]
        place = len(self.counts)
        pick = self._plan[place] if place < len(self._plan) else 0
        pick = pick if 0 <= pick < len(readings) else 0
        self.counts.append(len(readings))
        self.taken.append(pick)
        return readings[pick]

    def next_plan(self, fixed: int) -> tuple[int, ...] | None:
        """The plan after a contradiction: the last place that has another reading takes it; the first `fixed` stay."""
        for place in range(len(self.counts) - 1, fixed - 1, -1):
            if self.taken[place] + 1 < self.counts[place]:
                return (*self.taken[:place], self.taken[place] + 1)
        return None


# ---- the dims of one file: their symbols, where they are read, and what they are in the file

_SMALLEST_TELLING = 3
"""A 1 or a 2 is in a file for many reasons."""


@dataclass(frozen=True)
class Dims:
    """Everything that may vary: the wanted dims, and those that the file leaves open by itself."""

    sizes: Mapping[str, int]
    sources: Mapping[Size, tuple[ir.Value, int]]
    """Symbol -> the input and the axis where its size can be read."""

    def at_file(self, size: Size) -> int | None:
        return evaluated(size, {dim_symbol(name): n for name, n in self.sizes.items()})

    def namesake(self, n: float) -> Size | None:
        """The one dim whose size in the file is this number; small numbers are everywhere and tell nothing."""
        same = [symbol for symbol in self.sources if self.at_file(symbol) == n and n >= _SMALLEST_TELLING]
        return same[0] if len(same) == 1 else None

    def agree(self, one: Size, other: Size) -> bool:
        """Whether two sizes are the same for other sizes of the dims, too."""
        if one == other:
            return True
        for extra in (1, 2, 3, 4):
            sizes = {dim_symbol(name): n + extra * k for k, (name, n) in enumerate(self.sizes.items(), 1)}
            if evaluated(one, sizes) != evaluated(other, sizes):
                return False
        return True

    def limit(self, size: Size, most: int) -> tuple[str | None, int]:
        """The dim that a size depends on, and the largest one with which the size does not exceed `most`."""
        symbols = list(size.free_symbols)
        if len(symbols) != 1 or symbols[0].name not in self.sizes:
            return None, 0
        symbol = symbols[0]
        low, high = self.sizes[symbol.name], budgets.FARTHEST_SIZE_OF_A_FREED_DIM
        while low < high:  # sizes grow with their dim
            middle = (low + high + 1) // 2
            fits = (evaluated(size, {symbol: middle}) or 0) <= most
            low, high = (middle, high) if fits else (low, middle - 1)
        return symbol.name, low
