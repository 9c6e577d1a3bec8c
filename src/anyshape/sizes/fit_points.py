"""The sizes at which a module was observed, and what is known to vary with them."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sympy

from anyshape.sizes.expressions import Size

Numbers = tuple[int, ...]
"""One number per observation."""


@dataclass(frozen=True)
class Points:
    """One mapping from dims to sizes per observation; `derived` sizes, as `height//2`, count like dims."""

    at: tuple[Mapping[Size, int], ...]
    derived: Mapping[Size, Numbers]

    def __len__(self) -> int:
        return len(self.at)

    @functools.cached_property
    def dims(self) -> Mapping[Size, Numbers]:
        return {dim: tuple(point[dim] for point in self.at) for dim in self.at[0]}

    @functools.cached_property
    def sizes(self) -> Mapping[Size, Numbers]:
        """The dims, then what is derived from them."""
        return {**self.dims, **self.derived}

    @functools.cached_property
    def products(self) -> Sequence[tuple[Size, Numbers, int]]:
        """`batch`, `seq`, `batch*seq`, `seq**2` and so on with their numbers and how many factors: shortest first."""
        found = []
        for count in (1, 2, 3):
            for factors in itertools.combinations_with_replacement(self.sizes, count):
                rows = zip(*(self.sizes[factor] for factor in factors), strict=True)
                found.append((sympy.Mul(*factors), tuple(math.prod(row) for row in rows), count))
        return found

    def only(self, places: Sequence[int]) -> Points:
        """The observations at these places."""
        derived = {size: tuple(numbers[place] for place in places) for size, numbers in self.derived.items()}
        return Points(tuple(self.at[place] for place in places), derived)
