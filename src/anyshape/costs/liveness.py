"""The most memory that values take at a time: each lives from its node to the last one that reads it.

Inputs live throughout and outputs to the end; weights are counted apart. A page follows the same rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

Lives = Sequence[tuple[Sequence[int], Sequence[int]]]
"""For each node in order what it reads and what it makes; -1 is no value."""


def peak_bytes(
    lives: Lives, sized: Sequence[float], inner: Sequence[float], inputs: Sequence[int], outputs: Sequence[int]
) -> float:
    """Where values take these bytes, and the bodies of nodes those."""
    held = sum(sized[value] for value in inputs)
    peak = held
    for (born, dead), own in zip(changes(lives, inputs, outputs), inner, strict=True):
        held += sum(sized[value] for value in born)
        peak = max(peak, held + own)
        held -= sum(sized[value] for value in dead)
    return peak


def changes(lives: Lives, inputs: Sequence[int], outputs: Sequence[int]) -> Iterator[tuple[list[int], list[int]]]:
    """For each node the values that begin with it, and those that end."""
    kept = {*inputs, *outputs}
    last = {value: place for place, (read, made) in enumerate(lives) for value in (*made, *read)}
    ends: list[list[int]] = [[] for _ in lives]
    for value, place in last.items():
        if value >= 0 and value not in kept:
            ends[place].append(value)
    for (_, made), dead in zip(lives, ends, strict=True):
        yield [value for value in made if value >= 0], dead
