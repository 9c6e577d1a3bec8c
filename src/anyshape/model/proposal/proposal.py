"""A declaration that nobody wrote: dims and sizes as a user would write them, and what each is based on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anyshape.sizes.notation import STATIC

if TYPE_CHECKING:
    from anyshape.declaration.calls import Signature
    from anyshape.model.proposal.probe import Place


@dataclass(frozen=True)
class Offer:
    """An axis that could vary as well, but is left static."""

    leaf: str
    axis: int
    why: str


@dataclass(frozen=True)
class Proposal:
    """`dims` and `sizes` in the notation of `export`."""

    dims: Mapping[str, tuple[str, ...]]
    """Every leaf that varies: one entry per axis, `_` where it is static; a Python int has one entry."""
    sizes: Mapping[str, str]
    """What a dim may be, where it is not `1..`."""
    basis: Mapping[str, str]
    """Dim -> one clause that says on what it is based."""
    offers: tuple[Offer, ...] = ()
    notes: tuple[str, ...] = ()


def notation(signature: Signature, entries: Mapping[Place, str]) -> dict[str, tuple[str, ...]]:
    """Every leaf that varies: one entry per axis."""
    rows: dict[str, tuple[str, ...]] = {}
    for leaf in signature.leaves:
        axes = range(leaf.value.dim()) if leaf.is_tensor else (None,)
        row = tuple(entries.get((leaf.name, axis), STATIC) for axis in axes)
        if any(entry != STATIC for entry in row):
            rows[leaf.name] = row
    return rows
