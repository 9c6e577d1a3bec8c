"""What the calls leave open, said aloud together with the call that would settle it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from anyshape.model.proposal.call_readings import Part, Structure
from anyshape.model.proposal.call_readings_settling import Settled, moves_alone
from anyshape.model.proposal.layout_features import looks_like_features
from anyshape.model.proposal.probe import Place, Prober
from anyshape.model.proposal.several_calls_followers import by_input
from anyshape.sizes.fit_relations import Column, moves

_MOST_STILL = 8
_MOST_SPLITS = 12
_MOST_NAMED = 3


def on_too_little(columns: Mapping[Place, Column], prober: Prober) -> Iterator[str]:
    """Calls that show nothing, or a model that takes too long to be asked."""
    if not any(map(moves, columns.values())):
        yield "all calls have the same sizes, so every size is fixed: pass calls of different sizes"
    if prober.exhausted:
        yield f"after {prober.count} runs of the model, what was still open was taken as it is in the calls"


def on_rivals(settled: Settled, texts: Mapping[int, str], rivals: Sequence[Mapping[int, str]]) -> Iterator[str]:
    """Other readings that fit all calls, and that the model runs with just as well."""
    for index, part in enumerate(settled.structure.parts):
        others = dict.fromkeys(rival[index] for rival in rivals if rival[index] != texts[index])
        if others:
            yield (
                f"{where(part.places)} is `{texts[index]}` in all calls, but `{'`, `'.join(others)}` as well, "
                f"and was taken for `{texts[index]}`: pass a call in which they differ"
            )


def on_unsettled(settled: Settled, texts: Mapping[int, str]) -> Iterator[str]:
    """Readings that were taken although the model could not be asked."""
    for index in settled.unsettled:
        part, reading = settled.structure.parts[index], settled.structure.readings[index]
        if reading is not None:
            yield (
                f"{where(part.places)} is `{texts[index]}` in all calls and was taken for it, "
                "though no run of the model confirmed that: pass a third call of other sizes"
            )


# ---- sizes that are equal in all calls, and which the model would take apart


def on_equals(structure: Structure, texts: Mapping[int, str], example: int, prober: Prober) -> Iterator[str]:
    for dim in structure.dims:
        places = list(structure.alike(dim))
        for own in itertools.islice(_splits(places), _MOST_SPLITS):
            rest = [place for place in places if place not in own]
            if moves_alone(_split_off(structure, own, dim), len(structure.parts), example, prober):
                yield (
                    f"{where(own)} and {where(rest)} are equal in all calls and share `{texts[dim]}`, "
                    "though the model takes them apart: pass a call in which they differ, if they may"
                )
                break


def _splits(places: Sequence[Place]) -> Iterator[list[Place]]:
    """What may have its size by chance: a number, one input with its mask, one of two axes of an input."""
    if any(axis is not None for _, axis in places):
        yield from ([place] for place in places if place[1] is None)
    axes = [place for place in places if place[1] is not None]
    yield from by_input(axes)
    for place in axes:
        if any(other[0] == place[0] and other != place for other in axes):
            yield from _around(place, axes)


def _around(place: Place, places: Sequence[Place]) -> Iterator[list[Place]]:
    """One axis of an input without its other one, alone and with places of other inputs."""
    others = [other for other in places if other[0] != place[0]]
    for count in range(len(others) + 1):
        yield from ([place, *more] for more in itertools.combinations(others, count))


def _split_off(structure: Structure, own: Sequence[Place], dim: int) -> Structure:
    """The structure with these places as a dim of their own, its last."""
    left = [replace(p, places=tuple(place for place in p.places if place not in own)) for p in structure.parts]
    return Structure((*left, Part(tuple(own), structure.parts[dim].column)), (*structure.readings, None))


# ---- sizes that stand still, and which the model would let vary


def on_still(still: Mapping[Place, int], structure: Structure, prober: Prober) -> Iterator[str]:
    moving = {place for part in structure.parts for place in part.places}
    groups: dict[tuple[int, int], list[Place]] = {}
    for (leaf, axis), size in still.items():
        if axis is not None and not looks_like_features((leaf, axis), moving, prober.signature.values):
            groups.setdefault((axis, size), []).append((leaf, axis))
    for (_, size), places in list(groups.items())[:_MOST_STILL]:
        if all(prober.runs(dict.fromkeys(places, other)) for other in (size + 1, size + 3, max(size - 1, 1))):
            yield (
                f"{where(places)} is {size} in all calls, so the file has it fixed, though the model takes others: "
                "pass a call in which it differs, if it varies"
            )


def where(places: Sequence[Place]) -> str:
    """`axis 1 of `ids``, or the name of a number."""
    texts = []
    for axis in dict.fromkeys(axis for _, axis in places):
        leaves = list(dict.fromkeys(leaf for leaf, other in places if other == axis))
        named = ", ".join(f"`{leaf}`" for leaf in leaves[:_MOST_NAMED])
        more = f" and {len(leaves) - _MOST_NAMED} more" if len(leaves) > _MOST_NAMED else ""
        texts.append(named + more if axis is None else f"axis {axis} of {named}{more}")
    return ", ".join(texts)
