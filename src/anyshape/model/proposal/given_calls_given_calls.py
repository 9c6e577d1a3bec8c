"""The calls of `examples=`, in whichever form they came, bound to the target's signature."""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from anyshape.declaration.calls import Signature, bind_call
from anyshape.declaration.calls_written_calls import read_call
from anyshape.declaration.targets import Target
from anyshape.errors import DeclarationError
from anyshape.model.proposal.given_calls import refuse_other_kinds
from anyshape.model.proposal.given_calls_watching import Call, Seen
from anyshape.model.proposal.probe import Place, sizes_of
from anyshape.sizes.fit_relations import Column, moves


def read_calls(target: Target, examples: Any) -> tuple[Signature, ...]:
    """All calls, of one kind; one sentence for what is no call, or a call of another kind."""
    if isinstance(examples, (str, Mapping, torch.Tensor)) or not isinstance(examples, Sequence):
        kind = type(examples).__name__
        raise DeclarationError(
            f"examples is of type {kind}: give a list of calls, such as [(x,), (y,)], or what watch recorded"
        )
    if not examples:
        nothing = "watch recorded no call" if isinstance(examples, Seen) else "examples is empty"
        raise DeclarationError(f"{nothing}: give two calls of different sizes")
    signatures = tuple(_bound(target, call, number) for number, call in enumerate(examples))
    refuse_other_kinds(target, signatures, offer="seen.of({})" if isinstance(examples, Seen) else None)
    return signatures


def _bound(target: Target, call: Any, number: int) -> Signature:
    try:
        if isinstance(call, Call):
            return bind_call(target, call.args, call.kwargs)
        if isinstance(call, (tuple, dict, collections.UserDict, torch.Tensor)):
            return bind_call(target, *read_call(call))
    except DeclarationError as error:
        raise DeclarationError(f"examples[{number}]: {error}") from None
    raise DeclarationError(
        f"examples[{number}] is of type {type(call).__name__}: a call is a tuple of arguments, a dict of keywords, "
        'or {"args": ..., "kwargs": ...}'
    )


def columns_of(signatures: Sequence[Signature]) -> dict[Place, Column]:
    """The size of every place in each call."""
    sizes = [sizes_of(signature) for signature in signatures]
    return {place: tuple(one[place] for one in sizes) for place in sizes[0]}


def best_call(signatures: Sequence[Signature]) -> int:
    """The call to export with: no size below 2, no two alike, as far as the calls have it; of several the smallest."""
    columns = {column for column in columns_of(signatures).values() if moves(column)}

    def drawback(number: int) -> tuple[int, int, int]:
        sizes = [column[number] for column in columns]
        return sum(size < 2 for size in sizes), len(sizes) - len(set(sizes)), sum(sizes)

    return min(range(len(signatures)), key=drawback)
