"""Places that do not move alone: their partners are looked for, the likely ones first, and no more than are needed.

Likely is: the same size on the same axis, in the same nested input, anywhere; some of these; these and one of another
size, which follows by the same step or in proportion (`n + 1`, `2*n`, `past + seq`, `height*width`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from anyshape.model.proposal.meanings import words_of
from anyshape.model.proposal.moves import Ground, Steps
from anyshape.model.proposal.probe import Place

_FEW = 8
"""Beyond so many partners, pairs of them are not tried one by one."""


def find_partners(ground: Ground, place: Place, pool: Sequence[Place], *, deep: bool = True) -> dict[Place, int] | None:
    """The smallest move around a place with partners from the pool, or None."""
    others = [other for other in pool if other != place]
    for steps in _candidates(ground, place, others, deep=deep):
        if ground.prober.budget.is_spent():
            return None
        if ground.admits(steps):
            return _split(ground, _minimal(ground, steps, place), place)
    return None


# ---- which partners, in which order


def _candidates(ground: Ground, place: Place, others: Sequence[Place], *, deep: bool) -> Iterator[dict[Place, int]]:
    sizes = ground.sizes
    equal = sorted((o for o in others if sizes[o] == sizes[place]), key=lambda o: (-_alike(o, place), o[1] != place[1]))
    groups = list(_equal_groups(place, equal))
    for group in groups:
        yield dict.fromkeys(group, 1)
    for other in equal:
        yield {place: 1, other: 1}
    if deep and len(equal) > 2:
        yield from _all_but_some(place, equal)
    unequal = [other for other in others if sizes[other] != sizes[place]]
    for group in ([place], *groups):
        yield from _with_another_size(ground, group, unequal)


def _alike(one: Place, other: Place) -> int:
    """How many words two names share: `past_k` and `past_v`, `q_ids` and `q_mask`."""
    return len(set(words_of(one[0])) & set(words_of(other[0])))


def _equal_groups(place: Place, equal: Sequence[Place]) -> Iterator[list[Place]]:
    same_axis = [other for other in equal if other[1] == place[1]]
    siblings = [other for other in same_axis if _root(other) == _root(place)]
    others = ([other for other in equal if other[1] == axis] for axis in dict.fromkeys(axis for _, axis in equal))
    groups = [same_axis, siblings, list(equal), *(group for group in others if len(group) > 1)]
    yield from ([place, *group] for n, group in enumerate(groups) if group and group not in groups[:n])


def _root(place: Place) -> str:
    return place[0].split(".")[0]


def _all_but_some(place: Place, equal: Sequence[Place]) -> Iterator[dict[Place, int]]:
    """Some are equal by coincidence: batch and heads, say."""
    for count in (1, 2) if len(equal) <= _FEW else (1,):
        for left_out in itertools.combinations(equal, count):
            kept = [other for other in equal if other not in left_out]
            if len(kept) > 1:
                yield dict.fromkeys([place, *kept], 1)


def _with_another_size(ground: Ground, group: Sequence[Place], unequal: Sequence[Place]) -> Iterator[dict[Place, int]]:
    sizes = ground.sizes
    size = sizes[group[0]]
    for other in unequal:
        twins = [o for o in unequal if sizes[o] == sizes[other] and o[1] == other[1]]
        for own, its in _proportions(size, sizes[other]):
            for partners in ([other], twins) if len(twins) > 1 else ([other],):
                yield dict.fromkeys(group, own) | dict.fromkeys(partners, its)


def _proportions(size: int, other: int) -> Iterator[tuple[int, int]]:
    """The same step, or that of a multiple; and half of a spectrum, which has one more."""
    yield 1, 1
    if 0 < size < other and other % size == 0:
        yield 1, other // size
    if 0 < other < size and size % other == 0:
        yield size // other, 1
    if other == size // 2 + 1:
        yield 2, 1
    if size == other // 2 + 1:
        yield 1, 2


# ---- no more than are needed


def _minimal(ground: Ground, steps: Steps, place: Place) -> dict[Place, int]:
    """Without the partners that need not move."""
    kept = dict(steps)
    for other in sorted(steps, key=lambda o: o[1] == place[1]):
        fewer = {p: step for p, step in kept.items() if p != other}
        if other != place and fewer and ground.admits(fewer):
            kept = fewer
    return kept


def _split(ground: Ground, steps: dict[Place, int], place: Place) -> dict[Place, int]:
    """A move that no single removal makes smaller may be the sum of two."""
    if len(steps) < 4:
        return steps
    rest = [other for other in steps if other != place]
    some = [more for count in ((1, 2) if len(steps) <= _FEW else (1,)) for more in itertools.combinations(rest, count)]
    parts = [(place, *more) for more in some if len(more) + 1 < len(steps) - 1]
    alike = [[o for o in steps if o[1] == place[1]], [o for o in steps if _root(o) == _root(place)]]
    parts += [tuple(part) for part in alike if 1 < len(part) < len(steps)]
    for part in parts:
        smaller = {other: steps[other] for other in part}
        if ground.admits(smaller):
            return _minimal(ground, smaller, place)
    return steps
