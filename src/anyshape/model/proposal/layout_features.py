"""Axes that could vary for want of a weight, but hold features: channels, heads, coordinates. They are offered."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from anyshape.model.proposal.meanings import attention_like, cache_like, words_of
from anyshape.model.proposal.moves import Ground, Move
from anyshape.model.proposal.probe import Place
from anyshape.model.proposal.proposal import Offer

_COORDINATES = frozenset(("boxes", "bboxes", "rois", "points", "coords", "xyz", "positions", "corners", "prototypes"))
_FEW_NUMBERS = 4


def without_features(ground: Ground, moves: Sequence[Move], named: Collection[Place]) -> tuple[list[Move], list[Offer]]:
    """The moves of sizes, and the places of the moves that look like features; what is annotated as a dim is one."""
    moving = {place for move in moves for place in move.steps}

    def is_feature(place: Place) -> bool:
        channels = _axis_of_channels(place[0], ground)
        return place not in named and looks_like_features(place, moving, ground.original.signature.values, channels)

    features = [move for move in moves if all(map(is_feature, move.steps))]
    offers = [Offer(leaf, axis or 0, _why(move)) for move in features for leaf, axis in move.steps]
    return [move for move in moves if move not in features], offers


def _why(move: Move) -> str:
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
    return is_row and bool(words & _COORDINATES) and value.shape[1] <= _FEW_NUMBERS


def _axis_of_channels(leaf: str, ground: Ground) -> int:
    """The last axis, unless the model works on [batch, channels, time]: by its layers, or by what the outputs show."""
    if ground.original.sizes.get((leaf, 2)) is None or (leaf, 3) in ground.sizes:
        return 2  # only a tensor of three axes leaves it open
    layers = {type(part).__name__ for part in ground.original.target.module.modules()}
    if any(name.endswith(("1d", "Upsample")) for name in layers):
        return 1
    kept, pooled = _changes(ground, (leaf, 1)), _changes(ground, (leaf, 2))
    # one more in, one more out: channels; more in, fewer more out: a time that is pooled, or cut into frames
    return 1 if kept == {_BY} and pooled and max(pooled) < _BY else 2


_BY = 4


def _changes(ground: Ground, place: Place) -> set[int]:
    """By how much axes of the outputs change with a place; nothing where it moves in steps, or not at all."""
    before, after = ground.outputs({}, 1), ground.outputs({place: 1}, _BY)
    if before is None or after is None or not ground.runs({place: 1}):
        return set()
    return {b - a for x, y in zip(before, after, strict=False) for a, b in zip(x, y, strict=False) if a != b}
