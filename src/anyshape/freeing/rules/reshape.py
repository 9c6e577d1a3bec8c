"""A reshape read as a regrouping of factors: which of them make up each new axis.

A factor of size 1, as a batch of 1 is, could go to either side of a boundary: every reading is given, the likeliest
first. Numbers side by side are one number, since any regrouping of them is right.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from anyshape.sizes.expressions import ONE, Factors, Size, is_number, number, product

_MOST_READINGS = 64
_MOST_STEPS = 20_000

Atom = tuple[Size, int]
"""A factor and its size in the file."""
Reading = tuple[Factors, ...]


def readings(factors: Sequence[Atom], target: Sequence[int]) -> list[Reading]:
    """Every way in which the factors, in their order, make up axes of these sizes; none where there is no way."""
    atoms = _runs(factors)
    if math.prod(n for _, n in atoms) != math.prod(target) or 0 in target:
        return []
    search = _Search(tuple(target))
    runs = {n for size, n in atoms if is_number(size)}
    found = dict.fromkeys(search.fill(tuple(atoms), 0))
    return sorted(found, key=lambda reading: sum(_unlikely(axis, runs) for axis in reading))


def _runs(factors: Sequence[Atom]) -> list[Atom]:
    """Without ones, and with neighbouring numbers as one."""
    atoms: list[Atom] = []
    for size, n in factors:
        if is_number(size) and n == 1:
            continue
        if is_number(size) and atoms and is_number(atoms[-1][0]):
            atoms[-1] = (atoms[-1][0] * size, atoms[-1][1] * n)
        else:
            atoms.append((size, n))
    return atoms


def _unlikely(axis: Factors, runs: set[int]) -> float:
    """Alone is likeliest; then beside a part of a number (heads), other dims, a whole number (features)."""
    free = [size for size in axis if not is_number(size)]
    numbers = product(size for size in axis if is_number(size))
    if not free or (len(free) == 1 and numbers == 1):
        return 0
    if numbers == 1:
        return 1
    return 2 if int(numbers) in runs else 0.5


@dataclass
class _Search:
    target: tuple[int, ...]
    steps: int = 0
    found: int = 0

    def fill(self, atoms: tuple[Atom, ...], axis: int) -> Iterator[Reading]:
        """Readings of the axes from this one on."""
        self.steps += 1
        if self.steps > _MOST_STEPS or self.found > _MOST_READINGS:
            return
        if axis == len(self.target):
            if not atoms:
                self.found += 1
                yield ()
            return
        for own, rest in self._taken(atoms, self.target[axis], ()):
            for others in self.fill(rest, axis + 1):
                yield (own or (ONE,), *others)

    def _taken(self, atoms: tuple[Atom, ...], need: int, own: Factors) -> Iterator[tuple[Factors, tuple[Atom, ...]]]:
        """What the next axis can be made of, and what is left."""
        self.steps += 1
        if self.steps > _MOST_STEPS:
            return
        if need == 1:
            alone = not own
            if not alone:
                yield own, atoms
            if atoms and atoms[0][1] == 1:
                yield from self._taken(atoms[1:], 1, (*own, atoms[0][0]))
            if alone:
                yield own, atoms
            return
        if not atoms:
            return
        (size, n), rest = atoms[0], atoms[1:]
        if need % n == 0:
            yield from self._taken(rest, need // n, (*own, size))
        elif n % need == 0:
            for first, second in _split(size, n, need):
                yield (*own, first[0]), (second, *rest)


def _split(size: Size, n: int, need: int) -> Iterator[tuple[Atom, Atom]]:
    """A factor that goes to two axes: which of them follows the dim cannot be seen."""
    other = n // need
    if is_number(size):
        yield (number(need), need), (number(other), other)
        return
    yield (size / other, need), (number(other), other)
    yield (number(need), need), (size / need, other)
