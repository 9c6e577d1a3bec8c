"""One call and no declaration: which axes vary is found by asking the model in eager, at small sizes.

The example is enlarged, every axis is moved alone, then with partners; moves that mean one size are tied by convention,
those that look like features are offered instead; all dims are tried together, and their bounds are looked for.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from anyshape.declaration.calls import Signature
from anyshape.declaration.targets import Target
from anyshape.errors import DeclarationError, first_line
from anyshape.model.oracle import may_be_provoked, run_once
from anyshape.model.proposal import bounds, dim_names, proposal
from anyshape.model.proposal.dim_names import Annotations, Scene, attention_like, cache_like, words_of
from anyshape.model.proposal.moves import DimMove, PlaceSteps, ProbingGround, find_moves, spread
from anyshape.model.proposal.probe import Place, RunBudget
from anyshape.model.proposal.proposal import Dim, DimProposal, Offer, expressions, notation
from anyshape.sizes import budgets
from anyshape.sizes.spelling import spelled
from anyshape.torchkit.capture import quiet
from anyshape.torchkit.state import evaluating


def propose(target: Target, signature: Signature) -> DimProposal:
    """The dims and sizes of a call, as its model lets them vary; nothing of the model or the call is changed."""
    if not may_be_provoked(target, signature):
        return DimProposal({}, {}, {}, notes=(f"{_ELSEWHERE} {spelled('dims=', '--dim')}",))
    annotations = dim_names.read_annotations(target, signature)
    counted = _CountedCall(target)
    watched = replace(target, call=counted)
    with quiet(), evaluating(target.module):
        _refuse_failing(watched, signature)
        budget = RunBudget.for_runs_of(watched, signature, budgets.MOST_RUNS_TO_FIND)
        ground = ProbingGround.of(watched, signature, budget=budget)
        search = _DimSearch(watched, signature, ground, annotations)
        found = search.proposal(RunBudget(budget.limit // 2, work=budget.work))
    note = bounds.note_of_the_search(counted.count, spent=budget.exhausted, late=budget.is_late)
    return replace(found, notes=(*found.notes, note))


_ELSEWHERE = (
    "the model is not on the CPU, where sizes that it refuses can be tried without harm: nothing was looked for; "
    "declare what varies with"
)


class _CountedCall:
    """The target's call, counted."""

    def __init__(self, target: Target) -> None:
        self.__signature__ = target.signature
        self._call = target.call
        self.count = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.count += 1
        return self._call(*args, **kwargs)


def _refuse_failing(target: Target, signature: Signature) -> None:
    try:
        run_once(target, signature)
    except Exception as error:
        said = f"{type(error).__name__}: {first_line(error)}"
        raise DeclarationError(f"`{target.name}` does not run on the example: {said}") from error


@dataclass
class _DimSearch:
    """From the ground to a proposal, step by step."""

    target: Target
    signature: Signature
    ground: ProbingGround
    annotations: Annotations

    def proposal(self, budget: RunBudget) -> DimProposal:
        named = self.annotations.names
        moves = find_moves(self.ground, self.annotations.static)
        moves, options = without_options(moves, self.target, self.signature.values)
        moves = tie(self.ground, moves, named, is_graph=Scene.of(self.signature, ()).is_graph)
        moves, features = proposal.without_features(self.ground, moves, named)
        return self._proposal_of_moves(moves, (*features, *options), budget)

    def _proposal_of_moves(self, moves: Sequence[DimMove], offers: tuple[Offer, ...], budget: RunBudget) -> DimProposal:
        dims, names = self._dims_and_names(moves)
        declared = self._notation(dims, names)
        trials = bounds.BoundTrials(self.target, self.signature, declared, budget=budget)
        found = bounds.bounds_of_dims(trials, dims, names, self.target.module)
        dims, names = self._dims_and_names([one.dim.move for one in found.dims])
        renamed = [replace(one, name=name) for one, name in zip(found.dims, names, strict=True)]
        return DimProposal(
            self._notation(dims, names),
            {one.name: one.text for one in renamed if one.text is not None},
            {one.name: bounds.basis_of(one.dim) for one in renamed},
            offers,
            (
                *([] if dims else [bounds.NOTHING_VARIES]),
                *self._notes_of_coincidences(dims, names),
                *dim_names.notes_of_annotations([dim.move.steps for dim in dims], self.annotations.names),
                *found.notes,
            ),
        )

    def _notes_of_coincidences(self, dims: Sequence[Dim], names: Sequence[str]) -> Iterator[str]:
        name_of = {id(dim.move): name for dim, name in zip(dims, names, strict=True)}
        for one, other in coincidences(self.ground, [dim.move for dim in dims]):
            size = self.ground.original.sizes[next(iter(one.steps))]
            yield bounds.note_of_coincidence(name_of[id(one)], name_of[id(other)], size)

    def _dims_and_names(self, moves: Sequence[DimMove]) -> tuple[list[Dim], list[str]]:
        """The dims of all moves, in the order of the call, and their names."""
        sizes = self.ground.original.sizes
        spreads = [(move, spread(move.steps, self.ground.bundled)) for move in moves]
        whole = [replace(move, steps={p: steps[p] for p in sizes if p in steps}) for move, steps in spreads]
        dims = proposal.dims_of(whole, sizes, self.ground.sizes, self.annotations.names)
        names = dim_names.name_dims(proposal.followers(dims, sizes), self.signature, self.target)
        return dims, dim_names.with_annotated([dim.move.steps for dim in dims], names, self.annotations.names)

    def _notation(self, dims: Sequence[Dim], names: Sequence[str]) -> dict[str, tuple[str, ...]]:
        return notation(self.signature, expressions(dims, names, self.ground.original.sizes))


# ---- Python ints that move by themselves: a required one is an input, an option with a default is offered


def without_options(
    moves: Sequence[DimMove], target: Target, values: Mapping[str, Any]
) -> tuple[list[DimMove], list[Offer]]:
    """The moves without those of ints alone that the call could do without; these are offered."""
    options = [
        move for move in moves if all(axis is None and not _is_required(target, leaf) for leaf, axis in move.steps)
    ]
    offers = [Offer(leaf, 0, f"{values[leaf]} becomes part of the file") for move in options for leaf, _ in move.steps]
    return [move for move in moves if move not in options], offers


def _is_required(target: Target, leaf: str) -> bool:
    parameter = target.signature.parameters.get(leaf)
    return parameter is not None and parameter.default is parameter.empty


# ---- ties that the model does not enforce but all mean: ids and their mask have one length, all inputs one batch
#
# Where names and positions do not settle it, equal sizes stay two dims, which serves both; and it is said aloud.

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
        # nodes and edges, words and bags
        return not is_graph and "offsets" not in _words_of_steps({**one, **other})
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


def coincidences(ground: ProbingGround, moves: Sequence[DimMove]) -> list[tuple[DimMove, DimMove]]:
    """Sizes that are equal in the example and may be meant as one; the model lets them move apart."""
    return [pair for pair in itertools.combinations(moves, 2) if are_equal(ground, *pair)]
