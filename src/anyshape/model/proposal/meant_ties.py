"""Ties that the model does not enforce but everybody means: ids and their mask have one length, all inputs one batch.

Where names and positions do not settle it, equal sizes stay two dims, which serves both; and it is said aloud.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from anyshape.model.proposal.meanings import attention_like, cache_like, words_of
from anyshape.model.proposal.moves import DimMove, PlaceSteps, ProbingGround
from anyshape.model.proposal.probe import Place

_COMPANIONS = frozenset(
    ("mask", "masks", "padding", "pad", "valid", "position", "positions", "pos", "type", "types", "segment", "segments",
     "bbox", "bias", "labels", "weights", "lengths", "visible")
)  # fmt: skip
"""Words of inputs that stand beside another one, element by element."""
_ENCODED = frozenset(("encoder", "cross", "memory", "source", "src"))
_SUMS = frozenset(("mask", "bias", "position", "positions", "padding"))
_MANY = 4
"""Where so many inputs have one size, a further one that has it means it."""
_TELLING_SIZE = 5
"""From here on, equal sizes on different axes are hardly an accident."""


@dataclass(frozen=True)
class Coincidence:
    """Two moves whose sizes are equal in the example; the model lets them move apart."""

    one: DimMove
    other: DimMove


def tie(
    ground: ProbingGround, moves: Sequence[DimMove], annotated: Mapping[Place, str], *, is_graph: bool
) -> list[DimMove]:
    """The moves, with those made one that mean one size."""
    tied = _tied_by_name(ground, moves, annotated)
    while pair := next(_pairs_of_one_size(ground, tied, annotated, is_graph=is_graph), None):
        one, other = pair
        tied[tied.index(one)] = DimMove({**one.steps, **other.steps}, "move together by convention")
        tied.remove(other)
    tied = _with_sums(ground, tied)
    return [move for move in tied if not _adds_nothing(move, tied)]


def _tied_by_name(ground: ProbingGround, moves: Sequence[DimMove], annotated: Mapping[Place, str]) -> list[DimMove]:
    """The moves, with those made one that an annotation gives one name."""
    tied = list(moves)
    for name in dict.fromkeys(annotated.values()):
        alike = [move for move in tied if name in {annotated.get(place) for place in move.steps}]
        joined = {place: step for move in alike for place, step in move.steps.items()}
        if len(alike) > 1 and ground.admits(joined):
            tied = [move for move in tied if move not in alike[1:]]
            tied[tied.index(alike[0])] = DimMove(joined, "move together as annotated")
    return tied


def _pairs_of_one_size(
    ground: ProbingGround, moves: Sequence[DimMove], annotated: Mapping[Place, str], *, is_graph: bool
) -> Iterator[tuple[DimMove, DimMove]]:
    for one, other in itertools.combinations(moves, 2):
        if not are_equal(ground, one, other) or _are_named_apart(one, other, annotated):
            continue
        if _are_meant_as_one(ground, one.steps, other.steps, is_graph) and ground.admits({**one.steps, **other.steps}):
            yield one, other


def _are_named_apart(one: DimMove, other: DimMove, annotated: Mapping[Place, str]) -> bool:
    names = [{annotated[place] for place in move.steps if place in annotated} for move in (one, other)]
    return all(names) and names[0].isdisjoint(names[1])


def are_equal(ground: ProbingGround, one: DimMove, other: DimMove) -> bool:
    """Whether two moves have one size in the example and the same step, in different inputs."""
    steps = {**one.steps, **other.steps}
    sizes = {ground.original.sizes[place] for place in steps}
    apart = {leaf for leaf, _ in one.steps}.isdisjoint(leaf for leaf, _ in other.steps)
    return apart and len(sizes) == 1 and len(set(steps.values())) == 1 and not (one.is_square or other.is_square)


def _are_meant_as_one(ground: ProbingGround, one: PlaceSteps, other: PlaceSteps, is_graph: bool) -> bool:
    axes = {axis for _, axis in (*one, *other)}
    if None in axes:
        return False
    if axes == {0}:
        return not is_graph and "offsets" not in _words_of_steps(one) | _words_of_steps(
            other
        )  # nodes and edges, words and bags
    size = ground.original.sizes[next(iter(one))]
    is_near = {axis for _, axis in one} & {axis for _, axis in other} or (size >= _TELLING_SIZE and 0 not in axes)
    if all(_words_of_steps(steps) & _ENCODED for steps in (one, other)):
        return True
    return bool(is_near) and _are_companions(ground, one, other)


def _are_companions(ground: ProbingGround, one: PlaceSteps, other: PlaceSteps) -> bool:
    """One is nothing but masks and the like, or many inputs have this size; or both attend in a step with a past."""
    stands_beside = any(all(_COMPANIONS & set(words_of(leaf)) for leaf, _ in steps) for steps in (one, other))
    attends = all(attention_like(leaf) and not cache_like(leaf) for leaf, _ in (*one, *other))
    is_usual = max(len({leaf for leaf, _ in steps}) for steps in (one, other)) >= _MANY
    return stands_beside or is_usual or (attends and any(cache_like(leaf) for leaf, _ in ground.sizes))


def _words_of_steps(steps: PlaceSteps) -> set[str]:
    return {word for leaf, _ in steps for word in words_of(leaf)}


# ---- a mask over two lengths


def _with_sums(ground: ProbingGround, moves: list[DimMove]) -> list[DimMove]:
    """A mask that moves alone, as long as two other dims together, follows both."""
    result = list(moves)
    for move in moves:
        place = next(iter(move.steps))
        if len(move.steps) > 1 or move.steps[place] != 1 or not _SUMS & set(words_of(place[0])):
            continue
        parts = _summands(ground, place, [m for m in result if m is not move])
        if parts is not None:
            followed = [DimMove({**part.steps, place: 1}, part.basis) for part in parts]
            result = [followed[parts.index(m)] if m in parts else m for m in result if m is not move]
    return result


def _summands(ground: ProbingGround, place: Place, moves: Sequence[DimMove]) -> tuple[DimMove, DimMove] | None:
    sizes = ground.original.sizes
    elsewhere = [m for m in moves if place[0] not in {leaf for leaf, _ in m.steps}]  # no axis adds to its neighbour
    plain = [m for m in elsewhere if set(m.steps.values()) == {1} and not m.is_square]
    single = [m for m in plain if len({sizes[p] for p in m.steps}) == 1]
    for one, other in itertools.combinations(single, 2):
        both = [sizes[next(iter(m.steps))] for m in (one, other)]
        if sum(both) == sizes[place] and all(ground.admits({**m.steps, place: 1}) for m in (one, other)):
            return one, other
    return None


# ---- moves that say nothing new


def _adds_nothing(move: DimMove, moves: Sequence[DimMove]) -> bool:
    """A part of another move, which is slack; or the sum of two others."""
    others = [other for other in moves if other is not move]
    if any(set(move.steps) < set(other.steps) for other in others):
        return True
    return any(
        {**one.steps, **two.steps} == dict(move.steps) and not set(one.steps) & set(two.steps)
        for one, two in itertools.combinations(others, 2)
    )


def coincidences(ground: ProbingGround, moves: Sequence[DimMove]) -> list[Coincidence]:
    """Sizes that are equal in the example and may be meant as one."""
    pairs = itertools.combinations(moves, 2)
    return [Coincidence(one, other) for one, other in pairs if are_equal(ground, one, other)]
