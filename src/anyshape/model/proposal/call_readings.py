"""Places that move together are a part; a structure says which parts are dims and how the others follow them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from anyshape.model.proposal.probe import Place
from anyshape.sizes.fit_relations import Column, Kind, Reading

_T = TypeVar("_T")


@dataclass(frozen=True)
class Part:
    """Places that have the same size in every call, at the same axis."""

    places: tuple[Place, ...]
    column: Column
    follower: bool = False
    """Whether it follows other sizes by what it is, a mask or a number: models often take other sizes, too."""

    @property
    def is_number(self) -> bool:
        return self.places[0][1] is None


@dataclass(frozen=True)
class Structure:
    """A reading for each part that follows others, None for each that is a dim."""

    parts: tuple[Part, ...]
    readings: tuple[Reading | None, ...]

    @property
    def dims(self) -> tuple[int, ...]:
        return tuple(index for index, reading in enumerate(self.readings) if reading is None)

    def bases(self, index: int) -> frozenset[int]:
        """The dims that a part follows; itself where it is one."""
        reading = self.readings[index]
        return frozenset({index}) if reading is None else frozenset().union(*map(self.bases, reading.of))

    def alike(self, dim: int) -> Iterator[Place]:
        """The places that have the size of a dim itself."""
        for index, reading in enumerate(self.readings):
            if index == dim or (reading and reading.kind == Kind.SAME and reading.of == (dim,)):
                yield from self.parts[index].places

    def sizes(self, dims: Mapping[int, int]) -> dict[Place, int]:
        """The size of every place where the dims have these sizes."""
        return self.spread({index: self._size(index, dims) for index in range(len(self.parts))})

    def spread(self, by_part: Mapping[int, _T]) -> dict[Place, _T]:
        """What is known of the parts, for every place."""
        return {place: by_part[index] for index, part in enumerate(self.parts) for place in part.places}

    def _size(self, index: int, dims: Mapping[int, int]) -> int:
        reading = self.readings[index]
        return dims[index] if reading is None else reading.value({base: self._size(base, dims) for base in reading.of})

    def is_sound(self) -> bool:
        """Whether every part leads to dims, and none back to itself."""
        return all(self._leads_to_dims(index, ()) for index in range(len(self.parts)))

    def _leads_to_dims(self, index: int, above: tuple[int, ...]) -> bool:
        reading = self.readings[index]
        if index in above or reading is None:
            return index not in above
        return all(self._leads_to_dims(base, (*above, index)) for base in reading.of)
