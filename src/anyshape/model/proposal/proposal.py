"""A declaration that nobody wrote: dims and sizes as a user would write them, and what each is based on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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
class DimProposal:
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


def proposal_text(proposal: DimProposal, leaves: Sequence[str]) -> str:
    """`dims=` and `sizes=` as arguments, then what they are based on, what else could vary, and notes."""
    declared = {key: " ".join(row) for key, row in _rows_by_container(proposal.dims, leaves).items()}
    parts = [
        [*_argument_lines("dims", declared), *(_argument_lines("sizes", proposal.sizes) if proposal.sizes else ())]
    ]
    parts.append(list(_basis_lines(proposal.basis)))
    parts.append([_offer_line(offer) for offer in proposal.offers])
    parts.append([f"note: {note}" for note in proposal.notes])
    return "\n\n".join("\n".join(part) for part in parts if part)


def proposal_to_dict(proposal: DimProposal) -> dict[str, Any]:
    return {
        "dims": {leaf: list(row) for leaf, row in proposal.dims.items()},
        "sizes": dict(proposal.sizes),
        "basis": dict(proposal.basis),
        "offers": [{"leaf": offer.leaf, "axis": offer.axis, "why": offer.why} for offer in proposal.offers],
        "notes": list(proposal.notes),
    }


def _rows_by_container(dims: Mapping[str, tuple[str, ...]], leaves: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """What is the same for all leaves of a container is said once: `past_key_values`."""
    result: dict[str, tuple[str, ...]] = {}
    for leaf, row in dims.items():
        result[next((key for key in _containers(leaf) if _is_same_below(key, row, dims, leaves)), leaf)] = row
    return result


def _containers(leaf: str) -> Iterator[str]:
    """`cache.0.key` -> `cache`, `cache.0`."""
    parts = leaf.split(".")
    yield from (".".join(parts[:count]) for count in range(1, len(parts)))


def _is_same_below(key: str, row: tuple[str, ...], dims: Mapping[str, tuple[str, ...]], leaves: Sequence[str]) -> bool:
    below = [leaf for leaf in leaves if leaf.startswith(f"{key}.")]
    return len(below) > 1 and all(dims.get(leaf) == row for leaf in below)


def _argument_lines(name: str, values: Mapping[str, str]) -> Iterator[str]:
    if not values:
        yield f"{name}={{}},"
        return
    yield f"{name}={{"
    yield from (f'    "{key}": "{value}",' for key, value in values.items())
    yield "},"


def _basis_lines(basis: Mapping[str, str]) -> Iterator[str]:
    width = max(map(len, basis), default=0)
    yield from (f"{dim:{width}}  {clause}" for dim, clause in basis.items())


def _offer_line(offer: Offer) -> str:
    return f"static: axis {offer.axis} of `{offer.leaf}`: {offer.why}"
