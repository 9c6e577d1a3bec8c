"""Python ints that move by themselves: a required one is an input, an option with a default is offered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from anyshape.declaration.targets import Target
from anyshape.model.proposal.moves import Move
from anyshape.model.proposal.proposal import Offer


def without_options(moves: Sequence[Move], target: Target, values: Mapping[str, Any]) -> tuple[list[Move], list[Offer]]:
    """The moves without those of ints alone that the call could do without; these are offered."""
    options = [
        move for move in moves if all(axis is None and not _is_required(target, leaf) for leaf, axis in move.steps)
    ]
    offers = [Offer(leaf, 0, f"{values[leaf]} becomes part of the file") for move in options for leaf, _ in move.steps]
    return [move for move in moves if move not in options], offers


def _is_required(target: Target, leaf: str) -> bool:
    parameter = target.signature.parameters.get(leaf)
    return parameter is not None and parameter.default is parameter.empty
