"""Loops over the places at which something holds: `for expert in is_hit.nonzero()`.

Where a step must know its place as a plain number (`self.experts[f"expert_{place}"]`) there is no body that serves all
of them. The places are among as many as the vector is long, so the steps of all are taken, and what a step has changed
counts only where its place holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from anyshape.conversion.control_flow.carried_moments import Kept
from anyshape.conversion.control_flow.collected import LoopError
from anyshape.conversion.control_flow.items import Cut, Items
from anyshape.conversion.operators.held_numbers_held_numbers import Held
from anyshape.torchkit.capture_expressions import is_same_number

_MOST = 64
_VECTORS: Any = WeakIdKeyDictionary()
"""Tensors of places -> the vector that holds at them."""
_nonzero: Callable[..., Any] = torch.nonzero


@dataclass(frozen=True)
class Place:
    """One step: the literal that it is given, and whether it is to be taken."""

    item: Tensor
    holds: Tensor

    def chosen(self, before: Kept, copies: Sequence[Any], after: Kept, name: str) -> Any:
        """A value as the step has left it, or as it was."""
        same = [now is was for now, was in zip(after.leaves, before.leaves, strict=False)]
        if after.structure == before.structure and all(same) and after.versions == before.versions:
            return after.value
        if after.structure != before.structure or not all(map(_are_alike, after.leaves, copies)):
            raise LoopError(f"`{name}` depends on which places hold, and is no tensor of one shape")
        leaves = [
            torch.where(self.holds, now, was) if isinstance(now, Tensor) else now
            for now, was in zip(after.leaves, copies, strict=True)
        ]
        return after.with_leaves(leaves)


def copied(kept: Kept) -> Sequence[Any]:
    """The leaves of a value, safe from writes."""
    return [leaf.clone() if isinstance(leaf, Tensor) else leaf for leaf in kept.leaves]


def _are_alike(now: Any, was: Any) -> bool:
    if isinstance(now, Tensor) and isinstance(was, Tensor):
        shapes = zip(now.shape, was.shape, strict=False)
        return now.dtype == was.dtype and now.ndim == was.ndim and all(is_same_number(*pair) for pair in shapes)
    return not isinstance(now, Tensor) and not isinstance(was, Tensor) and now is was


def all_places(items: Items) -> Sequence[Place] | None:
    """The steps that a loop may take; None where that is not known, or too many."""
    vector = _VECTORS.get(items.tensor) if isinstance(items, Cut) else None
    if vector is None or vector.shape[0] > _MOST:
        return None
    return [Place(torch.tensor([place]), vector[place] != 0) for place in range(vector.shape[0])]


def _places(input: Tensor, **options: Any) -> Any:  # noqa: A002
    if options or input.ndim != 1 or not isinstance(input.shape[0], int):
        return NotImplemented
    found = _nonzero(input)
    _VECTORS[found] = input
    return found


def _formatted(number: Tensor, form: str) -> Any:
    """`f"{place}"` of a literal, which torch's stand-in for a tensor would write as what it is."""
    value = Held().value_of(number)
    return NotImplemented if value is None else format(value, form)


ANSWERS: dict[tuple[Any, str], Callable[..., Any]] = {
    (torch, "nonzero"): _places,
    (Tensor, "nonzero"): _places,
    (Tensor, "__format__"): _formatted,
}
