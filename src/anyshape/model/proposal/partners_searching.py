"""All moves of a call: first the places that move alone, then those that need partners."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from anyshape.model.proposal.moves import Ground, Move, Steps, is_at_its_smallest, side_of_square, step_of
from anyshape.model.proposal.partners import find_partners
from anyshape.model.proposal.probe import Place


def find_moves(ground: Ground, static: Collection[Place] = ()) -> list[Move]:
    """Every move that the model admits; places that are known to be static are not asked."""
    asked = [place for place in ground.places if place not in static]
    alone = {place: step for place in asked if (step := step_of(ground, place)) is not None}
    moves = [Move({place: step}, _alone(step)) for place, step in alone.items()]
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


def _alone(step: int) -> str:
    return "moves alone" if step == 1 else f"moves alone, by {step}"


def _move_around(ground: Ground, place: Place, tied: list[Place], asked: list[Place]) -> Move | None:
    steps = find_partners(ground, place, tied)
    if steps is None and len(asked) > len(tied):
        # a partner that also moves alone: two times as many rows, of which one more is tolerated
        steps = find_partners(ground, place, asked, deep=False)
    if steps is not None:
        return Move(steps, _together(steps), is_halved=_is_halved(ground, steps))
    if place[1] is not None and (side := side_of_square(ground, place)) is not None:
        return Move({place: (side + 1) ** 2 - side**2}, "runs at square numbers", is_square=True)
    if is_at_its_smallest(ground, place):
        return Move({place: 1}, "grows, and is at its smallest in the example", is_lowest=True)
    return None


def _without_known(ground: Ground, place: Place, move: Move, known: Sequence[Move]) -> Move | None:
    """What is left of a move without those that it contains; rows that nobody reads move along with anything."""
    for other in known:
        rest = {p: step for p, step in move.steps.items() if p not in other.steps}
        if place not in rest or any(move.steps.get(p) != step for p, step in other.steps.items()):
            continue
        if ground.admits(rest):
            move = Move(rest, _together(rest))
        elif place in ground.slack:
            return None
    return move


def _is_halved(ground: Ground, steps: Steps) -> bool:
    """Whether one place moves by two and the other by one, and the first by one alone: `n` and `n // 2 + 1`."""
    wholes = [place for place, step in steps.items() if step == 2]
    halves = [place for place, step in steps.items() if step == 1]
    fits = bool(wholes and halves) and all(ground.sizes[h] == ground.sizes[w] // 2 + 1 for h in halves for w in wholes)
    return fits and ground.sizes[wholes[0]] % 2 == 0 and ground.runs(dict.fromkeys(wholes, 1))


def _together(steps: Steps) -> str:
    return "move together" if len(steps) > 1 else _alone(next(iter(steps.values())))
