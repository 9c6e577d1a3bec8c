"""The example at sizes that tell more: small axes enlarged, since everything broadcasts at 1; large ones made smaller.

An example as long as a table of the model cannot grow, and a large one costs time at every run. New small sizes stand
nowhere else in the call, so that no axis equals another by accident.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from anyshape.declaration.calls import Leaf, Signature
from anyshape.model.proposal.moves_bundles import spread
from anyshape.model.proposal.probe import Place, Prober

_TOO_SMALL = (1, 2)
_FURTHER = (2, 5)
"""By how much an axis must be able to grow before it is enlarged."""
_CAN_BE_HALVED, _LARGE = 8, 64
_FRACTIONS = (8, 4, 2)

Bundled = Mapping[Place, tuple[Place, ...]]


def shrunk(prober: Prober, bundled: Bundled) -> Signature | None:
    """The call with large axes, and those that cannot grow, at a fraction of their size; None where there are none."""
    sizes = prober.sizes
    kinds: dict[tuple[int, int], list[Place]] = {}
    for place in bundled:
        if place[1] is not None and sizes[place] >= _CAN_BE_HALVED:
            kinds.setdefault((place[1], sizes[place]), []).append(place)
    chosen: dict[Place, int] = {}
    for (_, size), places in kinds.items():
        if size > _LARGE or not prober.runs(spread(dict.fromkeys(places, size + 1), bundled)):
            chosen |= _smaller(prober, bundled, places, chosen)
    return _resized(prober, spread(chosen, bundled)) if chosen else None


def _smaller(
    prober: Prober, bundled: Bundled, places: Sequence[Place], chosen: Mapping[Place, int]
) -> dict[Place, int]:
    size = prober.sizes[places[0]]
    parts = (size // by for by in _FRACTIONS if size % by == 0 and size // by >= _CAN_BE_HALVED // 2)
    for part in parts:
        wanted = dict.fromkeys(places, part)
        if prober.runs(spread({**chosen, **wanted}, bundled)):
            return wanted
    return {}


def enlarged(prober: Prober, bundled: Bundled) -> Signature | None:
    """The call with its small axes enlarged; None where there are none, or none can be."""
    small = [p for p in bundled if p[1] is not None and prober.sizes[p] in _TOO_SMALL]

    def grows(places: Iterable[Place]) -> bool:
        return all(
            prober.runs(spread({place: prober.sizes[place] + by for place in places}, bundled)) for by in _FURTHER
        )

    chosen = _largest_that(grows, small, prober.sizes)
    for sizes in _new_sizes(chosen, prober.sizes):
        wanted = spread(sizes, bundled)
        if sizes and prober.runs(wanted):
            return _resized(prober, wanted)
    return None


def _largest_that(
    grows: Callable[[Sequence[Place]], bool], small: Sequence[Place], sizes: Mapping[Place, int]
) -> list[Place]:
    """All small axes that grow together, or as many as are found."""
    whole = [list(small), *([p for p in small if sizes[p] == size] for size in _TOO_SMALL)]
    for places in whole:
        if places and grows(places):
            return places
    kept: list[Place] = []
    for _, alike in itertools.groupby(sorted(small, key=_kind(sizes)), key=_kind(sizes)):
        places = list(alike)
        fewer = ([p for p in places if p != left] for left in places if len(places) > 1)
        kept += next((some for some in (places, *fewer) if grows([*kept, *some])), [])
    return kept


def _kind(sizes: Mapping[Place, int]) -> Callable[[Place], tuple[int, int]]:
    return lambda place: (place[1] or 0, sizes[place])


def _new_sizes(places: Sequence[Place], sizes: Mapping[Place, int]) -> Iterator[dict[Place, int]]:
    """Another size for each axis number and old size; where that does not run, for each old size alone."""
    free = [size for size in range(3, 64) if size not in set(sizes.values())]
    by_axis = sorted({_kind(sizes)(place) for place in places})
    yield {place: free[by_axis.index(_kind(sizes)(place))] for place in places}
    yield {place: free[_TOO_SMALL.index(sizes[place])] for place in places}


def _resized(prober: Prober, sizes: Mapping[Place, int]) -> Signature:
    """The call at these sizes, with content that means something where the model takes it."""
    signature = prober.signature
    for level in range(3):
        values = prober.meaningful_leaves(sizes, level)
        leaves = tuple(Leaf(leaf.name, values[leaf.name]) for leaf in signature.leaves)
        made = Signature(leaves, signature.positional, signature.keywords)
        if prober.accepts(values):
            break
    return made
