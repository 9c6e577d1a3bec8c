"""A declaration that nobody wrote: dims and sizes as a user would write them, and what each is based on.

From moves to the notation of `dims=`: every axis is an expression of the dims that move it.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from anyshape.model.proposal.dim_names import attention_like, cache_like, words_of
from anyshape.model.proposal.moves import DimMove, ProbingGround
from anyshape.model.proposal.probe import Place
from anyshape.sizes import budgets
from anyshape.sizes.notation import STATIC
from anyshape.sizes.spelling import argument, spelled

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
    """`dims=` and `sizes=` as arguments, on the command line as options, too; what they are based on, what else could
    vary, and notes.
    """
    declared = {key: " ".join(row) for key, row in _rows_by_container(proposal.dims, leaves).items()}
    width = max(map(len, proposal.basis), default=0)
    parts = (
        [*_argument_lines("dims", declared), *(_argument_lines("sizes", proposal.sizes) if proposal.sizes else ())],
        [*filter(None, [spelled("", _options(declared, proposal.sizes))])],
        [f"{dim:{width}}  {clause}" for dim, clause in proposal.basis.items()],
        [f"static: axis {offer.axis} of `{offer.leaf}`: {offer.why}" for offer in proposal.offers],
        [f"note: {note}" for note in proposal.notes],
    )
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


def _options(dims: Mapping[str, str], sizes: Mapping[str, str]) -> str:
    """The same for `anyshape export`, as a shell takes it."""
    named = {argument("dims"): dims, argument("sizes"): sizes}
    return " ".join(
        f"{name} {shlex.quote(f'{key}={value}')}" for name, given in named.items() for key, value in given.items()
    )


# ---- from moves to dims


@dataclass(frozen=True)
class Dim:
    """One move, seen from the place whose size is the dim itself."""

    move: DimMove
    base: Place
    size: int
    """In the example."""
    probed: int
    """In the example at the sizes at which it was probed."""
    step: int
    """From one size to the next at which the model runs."""

    @property
    def ratios(self) -> dict[Place, int]:
        """How much each place grows when the dim grows by one."""
        own = self.move.steps[self.base]
        return {place: step // own for place, step in self.move.steps.items()}


def dims_of(
    moves: Sequence[DimMove], sizes: Mapping[Place, int], probed: Mapping[Place, int], named: Collection[Place] = ()
) -> list[Dim]:
    """A dim for each move, in the order of the call; its size is that of a place that is named, where one is."""
    order = list(sizes)
    dims = [_dim(move, _base(move, moves, sizes, named), sizes, probed) for move in moves]
    return sorted(dims, key=lambda dim: min(order.index(place) for place in dim.move.steps))


def _base(move: DimMove, moves: Sequence[DimMove], sizes: Mapping[Place, int], named: Collection[Place]) -> Place:
    shared = {place for other in moves if other is not move for place in other.steps}
    wholes = [place for place in move.steps if not _is_half(place, move, sizes)]

    def rank(place: Place) -> tuple[bool, bool, bool, int, int]:
        measures = all(move.steps[other] % move.steps[place] == 0 for other in wholes)
        return not measures, place in shared, place not in named, move.steps[place], sizes[place]

    return min(wholes, key=rank)


def _dim(move: DimMove, base: Place, sizes: Mapping[Place, int], probed: Mapping[Place, int]) -> Dim:
    if move.is_square:
        return Dim(move, base, round(sizes[base] ** 0.5), round(probed[base] ** 0.5), 1)
    return Dim(move, base, sizes[base], probed[base], 1 if move.is_halved else move.steps[base])


def _is_half(place: Place, move: DimMove, sizes: Mapping[Place, int]) -> bool:
    """Whether a place is half of another and one more."""
    wholes = [p for p, step in move.steps.items() if step == 2 * move.steps[place]]
    return any(sizes[place] == sizes[whole] // 2 + 1 for whole in wholes)


def followers(dims: Sequence[Dim], sizes: Mapping[Place, int]) -> list[frozenset[Place]]:
    """For each dim the places that have its very size, and no other dim's."""
    entries = [expressions([dim], ["n"], sizes) for dim in dims]
    shared = [{place for other in dims if other is not dim for place in other.move.steps} for dim in dims]
    return [
        frozenset(p for p, text in row.items() if (text == "n" or len(row) == 1) and p not in others) or frozenset(row)
        for row, others in zip(entries, shared, strict=True)
    ]


def expressions(dims: Sequence[Dim], names: Sequence[str], sizes: Mapping[Place, int]) -> dict[Place, str]:
    """Every place that moves, as an expression of the names."""
    places = {place for dim in dims for place in dim.move.steps}
    return {place: _expression(place, dims, names, sizes) for place in sizes if place in places}


def _expression(place: Place, dims: Sequence[Dim], names: Sequence[str], sizes: Mapping[Place, int]) -> str:
    parts = [(dim, name) for dim, name in zip(dims, names, strict=True) if place in dim.move.steps]
    parts.sort(key=lambda part: not part[1].startswith("past"))  # what came before stands before
    if len(parts) == 1 and parts[0][0].move.is_square:
        return f"{parts[0][1]} * {parts[0][1]}"
    if len(parts) == 1 and _is_half(place, parts[0][0].move, sizes):
        return f"{parts[0][1]} // 2 + 1"
    if len(parts) == 2 and _is_product(place, parts[0][0], parts[1][0], sizes):
        return f"{parts[0][1]} * {parts[1][1]}"
    terms = [(dim.ratios[place], name) for dim, name in parts]
    rest = sizes[place] - sum(dim.ratios[place] * dim.size for dim, _ in parts)
    text = " + ".join(name if ratio == 1 else f"{ratio} * {name}" for ratio, name in terms)
    return text if rest == 0 else f"{text} {'+' if rest > 0 else '-'} {abs(rest)}"


def _is_product(place: Place, one: Dim, other: Dim, sizes: Mapping[Place, int]) -> bool:
    """Whether each dim moves a place as often as the other is long: `height * width`."""
    crosswise = one.ratios[place] == other.probed and other.ratios[place] == one.probed
    return crosswise and sizes[place] == one.size * other.size and max(one.size, other.size) > 1


# ---- axes that could vary for want of a weight, but hold features: channels, heads, coordinates; they are offered

_COORDINATES = frozenset(("boxes", "bboxes", "rois", "points", "coords", "xyz", "positions", "corners", "prototypes"))


def without_features(
    ground: ProbingGround, moves: Sequence[DimMove], named: Collection[Place]
) -> tuple[list[DimMove], list[Offer]]:
    """The moves of sizes, and the places of the moves that look like features; what is annotated as a dim is one."""
    moving = {place for move in moves for place in move.steps}

    def is_feature(place: Place) -> bool:
        channels = _axis_of_channels(place[0], ground)
        return place not in named and looks_like_features(place, moving, ground.original.signature.values, channels)

    features = [move for move in moves if all(map(is_feature, move.steps))]
    offers = [Offer(leaf, axis or 0, _why_static(move)) for move in features for leaf, axis in move.steps]
    return [move for move in moves if move not in features], offers


def _why_static(move: DimMove) -> str:
    together = " together" if len(move.steps) > 1 else ""
    return f"the model lets it vary{together}, but it looks like features"


def may_be_features(place: Place, rank: int) -> bool:
    """Whether features usually stand on this axis."""
    return place[1] == (1 if rank >= 4 else 2 if rank == 3 else -1)


def looks_like_features(place: Place, moving: Collection[Place], values: Mapping[str, Any], channels: int = 2) -> bool:
    """Whether an axis looks like features beside the others of its tensor that move; `channels`: theirs of three."""
    leaf, axis = place
    if axis is None:
        return False
    value, words = values[leaf], set(words_of(leaf))
    rank = value.dim()
    if rank >= 4 and (attention_like(leaf) or cache_like(leaf)):
        return axis in (1, rank - 1)
    if rank >= 4:
        return axis == 1 and all((leaf, side) in moving for side in range(2, rank))
    if rank == 3:
        return axis == channels and (leaf, 3 - axis) in moving
    is_row = rank == 2 and axis == 1 and (leaf, 0) in moving and value.is_floating_point()
    return is_row and bool(words & _COORDINATES) and value.shape[1] <= budgets.FEW_NUMBERS_TO_OFFER


def _axis_of_channels(leaf: str, ground: ProbingGround) -> int:
    """The last axis, unless the model works on [batch, channels, time]: by its layers, or by what the outputs show."""
    if ground.original.sizes.get((leaf, 2)) is None or (leaf, 3) in ground.sizes:
        return 2  # only a tensor of three axes leaves it open
    layers = {type(part).__name__ for part in ground.original.target.module.modules()}
    if any(name.endswith(("1d", "Upsample")) for name in layers):
        return 1
    kept, pooled = _changes_of_outputs(ground, (leaf, 1)), _changes_of_outputs(ground, (leaf, 2))
    # one more in, one more out: channels; more in, fewer more out: a time that is pooled, or cut into frames
    return 1 if kept == {_BY} and pooled and max(pooled) < _BY else 2


_BY = 4


def _changes_of_outputs(ground: ProbingGround, place: Place) -> set[int]:
    """By how much axes of the outputs change with a place; nothing where it moves in steps, or not at all."""
    before, after = ground.outputs({}, 1), ground.outputs({place: 1}, _BY)
    if before is None or after is None or not ground.runs({place: 1}):
        return set()
    return {b - a for x, y in zip(before, after, strict=False) for a, b in zip(x, y, strict=False) if a != b}
