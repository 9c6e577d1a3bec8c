"""All moves of a call: first the places that move alone, then those that need partners, and no more than are needed.

Partners are looked for in the order in which they are likely: the same size on the same axis, in the same nested input,
anywhere; some of these; these and one of another size, which follows by the same step or in proportion (`n + 1`, `2*n`,
`past + seq`, `height*width`).
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence

from anyshape.model.proposal.meanings import words_of
from anyshape.model.proposal.moves import (
    DimMove,
    PlaceSteps,
    ProbingGround,
    is_at_its_smallest,
    side_of_square,
    step_of,
)
from anyshape.model.proposal.probe import Place, argument_of
from anyshape.sizes import budgets


def find_moves(ground: ProbingGround, static: Collection[Place] = ()) -> list[DimMove]:
    """Every move that the model admits; places that are known to be static are not asked."""
    asked = [place for place in ground.places if place not in static]
    alone = {place: step for place in asked if (step := step_of(ground, place)) is not None}
    moves = [DimMove({place: step}, _basis_alone(step)) for place, step in alone.items()]
    tied = [place for place in asked if place not in alone and place not in ground.fixed]
    done: set[Place] = set()
    for place in tied:
        if place in done:
            continue
        found = _move_around(ground, place, tied, [p for p in asked if p not in ground.fixed])
        found = _without_known(ground, place, found, moves) if found is not None else None
        if found is not None and found.steps not in [move.steps for move in moves]:
            moves.append(found)
            done |= {p for p in found.steps if len(found.steps) > 1 and ground.sizes[p] == ground.sizes[place]}
    return moves


def _basis_alone(step: int) -> str:
    return "moves alone" if step == 1 else f"moves alone, by {step}"


def _move_around(ground: ProbingGround, place: Place, tied: list[Place], asked: list[Place]) -> DimMove | None:
    steps = find_partners(ground, place, tied)
    if steps is None and len(asked) > len(tied):
        # a partner that also moves alone: two times as many rows, of which one more is tolerated
        steps = find_partners(ground, place, asked, deep=False)
    if steps is not None:
        return DimMove(steps, _basis_of(steps), is_halved=_is_halved(ground, steps))
    if place[1] is not None and (side := side_of_square(ground, place)) is not None:
        return DimMove({place: (side + 1) ** 2 - side**2}, "runs at square numbers", is_square=True)
    if is_at_its_smallest(ground, place):
        return DimMove({place: 1}, "grows, and is at its smallest in the example", is_lowest=True)
    return None


def _without_known(ground: ProbingGround, place: Place, move: DimMove, known: Sequence[DimMove]) -> DimMove | None:
    """What is left of a move without those that it contains; rows that nobody reads move along with anything."""
    for other in known:
        rest = {p: step for p, step in move.steps.items() if p not in other.steps}
        if place not in rest or any(move.steps.get(p) != step for p, step in other.steps.items()):
            continue
        if ground.admits(rest):
            move = DimMove(rest, _basis_of(rest))
        elif place in ground.slack:
            return None
    return move


def _is_halved(ground: ProbingGround, steps: PlaceSteps) -> bool:
    """Whether one place moves by two and the other by one, and the first by one alone: `n` and `n // 2 + 1`."""
    wholes = [place for place, step in steps.items() if step == 2]
    halves = [place for place, step in steps.items() if step == 1]
    fits = bool(wholes and halves) and all(ground.sizes[h] == ground.sizes[w] // 2 + 1 for h in halves for w in wholes)
    return fits and ground.sizes[wholes[0]] % 2 == 0 and ground.runs(dict.fromkeys(wholes, 1))


def _basis_of(steps: PlaceSteps) -> str:
    return "move together" if len(steps) > 1 else _basis_alone(next(iter(steps.values())))


# ---- the partners of one place


def find_partners(
    ground: ProbingGround, place: Place, pool: Sequence[Place], *, deep: bool = True
) -> dict[Place, int] | None:
    """The smallest move around a place with partners from the pool, or None."""
    others = [other for other in pool if other != place]
    for steps in _steps_to_try(ground, place, others, deep=deep):
        if ground.prober.budget.is_spent():
            return None
        if ground.admits(steps):
            return _one_of_two_moves(ground, _needed_steps(ground, steps, place), place)
    return None


# ---- which partners, in which order


def _steps_to_try(
    ground: ProbingGround, place: Place, others: Sequence[Place], *, deep: bool
) -> Iterator[dict[Place, int]]:
    sizes = ground.sizes
    equal = sorted(
        (o for o in others if sizes[o] == sizes[place]), key=lambda o: (-_shared_words(o, place), o[1] != place[1])
    )
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


def _shared_words(one: Place, other: Place) -> int:
    """How many words two names share: `past_k` and `past_v`, `q_ids` and `q_mask`."""
    return len(set(words_of(one[0])) & set(words_of(other[0])))


def _equal_groups(place: Place, equal: Sequence[Place]) -> Iterator[list[Place]]:
    same_axis = [other for other in equal if other[1] == place[1]]
    siblings = [other for other in same_axis if argument_of(other[0]) == argument_of(place[0])]
    others = ([other for other in equal if other[1] == axis] for axis in dict.fromkeys(axis for _, axis in equal))
    groups = [same_axis, siblings, list(equal), *(group for group in others if len(group) > 1)]
    yield from ([place, *group] for n, group in enumerate(groups) if group and group not in groups[:n])


def _all_but_some(place: Place, equal: Sequence[Place]) -> Iterator[dict[Place, int]]:
    """Some are equal by coincidence: batch and heads, say."""
    for count in (1, 2) if len(equal) <= budgets.FEW_PLACES_TO_COMBINE else (1,):
        for left_out in itertools.combinations(equal, count):
            kept = [other for other in equal if other not in left_out]
            if len(kept) > 1:
                yield dict.fromkeys([place, *kept], 1)


def _with_another_size(
    ground: ProbingGround, group: Sequence[Place], unequal: Sequence[Place]
) -> Iterator[dict[Place, int]]:
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


def _needed_steps(ground: ProbingGround, steps: PlaceSteps, place: Place) -> dict[Place, int]:
    """Without the partners that need not move."""
    kept = dict(steps)
    for other in sorted(steps, key=lambda o: o[1] == place[1]):
        fewer = {p: step for p, step in kept.items() if p != other}
        if other != place and fewer and ground.admits(fewer):
            kept = fewer
    return kept


def _one_of_two_moves(ground: ProbingGround, steps: dict[Place, int], place: Place) -> dict[Place, int]:
    """A move that no single removal makes smaller may be the sum of two."""
    if len(steps) < 4:
        return steps
    rest = [other for other in steps if other != place]
    some = [
        more
        for count in ((1, 2) if len(steps) <= budgets.FEW_PLACES_TO_COMBINE else (1,))
        for more in itertools.combinations(rest, count)
    ]
    parts = [(place, *more) for more in some if len(more) + 1 < len(steps) - 1]
    alike = [[o for o in steps if o[1] == place[1]], [o for o in steps if argument_of(o[0]) == argument_of(place[0])]]
    parts += [tuple(part) for part in alike if 1 < len(part) < len(steps)]
    for part in parts:
        smaller = {other: steps[other] for other in part}
        if ground.admits(smaller):
            return _needed_steps(ground, smaller, place)
    return steps
