"""Sizes at which a recorded assumption breaks, wherever in the declared ranges they lie.

The sizes of a plan end at a horizon where a range is open. An assumption of the trace such as `n <= 64` may first break
beyond it, and says by itself where to look.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from anyshape.bench.plan import Sizes
from anyshape.sizes.notation import SizeRange

_LARGEST = 2**22
_MOST_SIZES = 12


class Suspect(Protocol):
    """A condition that a trace took for granted."""

    @property
    def dims(self) -> tuple[str, ...]: ...

    @property
    def constants(self) -> set[int]: ...

    def holds(self, sizes: Mapping[str, int]) -> bool: ...


def breaking_sizes(
    suspects: Iterable[Suspect], ranges: Mapping[str, SizeRange], traced: Mapping[str, int]
) -> list[Sizes]:
    """For each condition and dim the smallest size found at which it is another than at the traced sizes."""
    found: dict[tuple[int, ...], Sizes] = {}
    for suspect in suspects:
        for dim in suspect.dims:
            sizes = _first_break(suspect, dim, ranges[dim], traced)
            if sizes is not None:
                found.setdefault(tuple(sizes.values()), sizes)
    return sorted(found.values(), key=lambda sizes: sum(sizes.values()))[:_MOST_SIZES]


_FAR = (33, 64, 65, 100, 128, 129, 200, 256, 257, 512, 1000, 1024)
"""Where code that goes by blocks, tables or powers of two first shows it."""


def far_sizes(ranges: Mapping[str, SizeRange], traced: Mapping[str, int]) -> list[Sizes]:
    """Sizes beyond the horizon of open ranges, for a file whose making left no record of assumptions."""
    return [
        {**traced, dim: size}
        for size in _FAR
        for dim, declared in ranges.items()
        if size in declared and declared.is_open
    ]


def _first_break(suspect: Suspect, dim: str, declared: SizeRange, traced: Mapping[str, int]) -> Sizes | None:
    at_traced = suspect.holds(traced)
    for size in sorted(set(_candidates(suspect.constants))):
        if size in declared and suspect.holds({**traced, dim: size}) != at_traced:
            return {**traced, dim: size}
    return None


def _candidates(constants: Iterable[int]) -> Iterator[int]:
    """Around the numbers of a condition, their multiples and quotients, and powers of two."""
    known = {number for number in constants if 0 < number <= _LARGEST}
    for number in known:
        yield from (number - 1, number, number + 1, 2 * number, 2 * number + 1)
        yield from (number // other + 1 for other in known if other > 1)
    yield from (2**power + 1 for power in range(22))
