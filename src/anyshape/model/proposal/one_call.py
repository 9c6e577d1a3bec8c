"""One call and no declaration: which axes vary is found by asking the model in eager, at small sizes.

The example is enlarged, every axis is moved alone, then with partners; moves that mean one size are tied by convention,
those that look like features are offered instead; all dims are tried together, and their bounds are looked for.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from anyshape.declaration.calls import Signature
from anyshape.declaration.targets import Target
from anyshape.errors import DeclarationError, first_line
from anyshape.model.oracle import may_be_provoked
from anyshape.model.proposal.annotations import Annotations, notes_of_annotations, read_annotations, with_annotated
from anyshape.model.proposal.bounds import (
    NOTHING_VARIES,
    BoundTrials,
    basis_of,
    bounds_of_dims,
    note_of_coincidence,
    note_of_the_search,
)
from anyshape.model.proposal.dim_names import name_dims
from anyshape.model.proposal.layout import Dim, dims_of, expressions, followers, without_features
from anyshape.model.proposal.meanings import Scene
from anyshape.model.proposal.meant_ties import coincidences, tie
from anyshape.model.proposal.moves import DimMove, ProbingGround, spread
from anyshape.model.proposal.partners import find_moves
from anyshape.model.proposal.probe import RunBudget
from anyshape.model.proposal.proposal import DimProposal, Offer, notation
from anyshape.torchkit.capture import quiet
from anyshape.torchkit.state import untouched

_MOST_RUNS, _LEAST_SECONDS, _LEAST_RUNS = 400, 20.0, 60
"""A search ends after so many runs; and after so many seconds, or the time of so many runs where that is longer."""


def propose(target: Target, signature: Signature, *, seed: int = 0) -> DimProposal:
    """The dims and sizes of a call, as its model lets them vary; nothing of the model or the call is changed."""
    if not may_be_provoked(target, signature):
        return DimProposal({}, {}, {}, notes=(_ELSEWHERE,))
    annotations = read_annotations(target, signature)
    counted = _CountedCall(target)
    watched = replace(target, call=counted)
    with quiet(), untouched(target.module):
        run = _seconds_of_a_run(watched, signature)
        seconds = max(_LEAST_SECONDS, _LEAST_RUNS * run)
        budget = RunBudget.within(_MOST_RUNS, seconds)
        ground = ProbingGround.of(watched, signature, budget=budget, seed=seed)
        found = _DimSearch(watched, signature, ground, annotations, run, seed).proposal(seconds / 2)
    return replace(found, notes=(*found.notes, *note_of_the_search(counted.count, seconds, spent=budget.exhausted)))


_ELSEWHERE = (
    "the model is not on the CPU, where sizes that it refuses can be tried without harm: nothing was looked for; "
    "declare what varies with dims="
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


def _seconds_of_a_run(target: Target, signature: Signature) -> float:
    """How long the example takes; the first run, which may load and compile, does not count."""
    seconds = 0.0
    for _ in range(2):
        copies = {leaf.name: leaf.value.clone() for leaf in signature.leaves if leaf.is_tensor}
        args, kwargs = signature.build(copies)
        start = time.process_time()
        try:
            with untouched(target.module), torch.no_grad():
                target.call(*args, **kwargs)
        except Exception as error:
            said = f"{type(error).__name__}: {first_line(error)}"
            raise DeclarationError(f"`{target.name}` does not run on the example: {said}") from error
        seconds = time.process_time() - start
    return seconds


@dataclass
class _DimSearch:
    """From the ground to a proposal, step by step."""

    target: Target
    signature: Signature
    ground: ProbingGround
    annotations: Annotations
    seconds: float
    """Of one run of the example."""
    seed: int

    def proposal(self, seconds: float) -> DimProposal:
        values = self.signature.values
        named = self.annotations.names
        moves = find_moves(self.ground, self.annotations.static)
        moves, options = without_options(moves, self.target, values)
        moves = tie(self.ground, moves, named, is_graph=Scene.of(self.signature, ()).is_graph)
        moves, features = without_features(self.ground, moves, named)
        offers = (*features, *options)
        return self._proposal_of_moves(moves, offers, RunBudget.within(_MOST_RUNS // 2, seconds))

    def _proposal_of_moves(self, moves: Sequence[DimMove], offers: tuple[Offer, ...], budget: RunBudget) -> DimProposal:
        dims, names = self._dims_and_names(moves)
        declared = self._notation(dims, names)
        trials = BoundTrials(self.target, self.signature, declared, seconds=self.seconds, budget=budget, seed=self.seed)
        found = bounds_of_dims(trials, dims, names, self.target.module, seed=self.seed)
        dims, names = self._dims_and_names([one.dim.move for one in found.dims])
        renamed = [replace(one, name=name) for one, name in zip(found.dims, names, strict=True)]
        return DimProposal(
            self._notation(dims, names),
            {one.name: one.text for one in renamed if one.text is not None},
            {one.name: basis_of(one.dim) for one in renamed},
            offers,
            (
                *([] if dims else [NOTHING_VARIES]),
                *self._notes_of_coincidences(dims, names),
                *notes_of_annotations(dims, self.annotations.names),
                *found.notes,
            ),
        )

    def _notes_of_coincidences(self, dims: Sequence[Dim], names: Sequence[str]) -> Iterator[str]:
        name_of = {id(dim.move): name for dim, name in zip(dims, names, strict=True)}
        for pair in coincidences(self.ground, [dim.move for dim in dims]):
            size = self.ground.original.sizes[next(iter(pair.one.steps))]
            yield note_of_coincidence(name_of[id(pair.one)], name_of[id(pair.other)], size)

    def _dims_and_names(self, moves: Sequence[DimMove]) -> tuple[list[Dim], list[str]]:
        """The dims of all moves, in the order of the call, and their names."""
        sizes = self.ground.original.sizes
        spreads = [(move, spread(move.steps, self.ground.bundled)) for move in moves]
        whole = [replace(move, steps={p: steps[p] for p in sizes if p in steps}) for move, steps in spreads]
        dims = dims_of(whole, sizes, self.ground.sizes, self.annotations.names)
        names = name_dims(followers(dims, sizes), self.signature, self.target)
        return dims, with_annotated([dim.move.steps for dim in dims], names, self.annotations.names)

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
