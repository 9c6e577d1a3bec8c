"""Leaves that are alike in every layer, such as the keys and values of a cache, are probed as one."""

from __future__ import annotations

import re
from collections.abc import Mapping

from anyshape.declaration.calls import Leaf, Signature
from anyshape.model.proposal.probe import Place, sizes_of

_HOLDS_THE_PAST = re.compile(r"past|cache|present|earlier|mem")


def bundles(signature: Signature) -> dict[Place, tuple[Place, ...]]:
    """Each place that stands for others -> all of them, itself included; every place is in one bundle."""
    firsts: dict[tuple[object, ...], Place] = {}
    found: dict[Place, tuple[Place, ...]] = {}
    leaves = {leaf.name: leaf for leaf in signature.leaves}
    for place in sizes_of(signature):
        first = firsts.setdefault((*_kind(leaves[place[0]]), place[1]), place)
        found[first] = (*found.get(first, ()), place)
    return found


def _kind(leaf: Leaf) -> tuple[object, ...]:
    """What leaves of one bundle have in common; a leaf of its own has its name alone."""
    if not leaf.is_tensor or not _HOLDS_THE_PAST.search(leaf.name):
        return (leaf.name,)
    *outer, last = leaf.name.split(".")
    layer = re.sub(r"\d+", "#", ".".join(outer))
    if outer and not last.isdecimal():
        layer = f"{layer}.{_without_role(last)}"
    elif outer:
        layer = f"{layer}.{last}"  # of what stands in each layer, the first and the second may differ
    else:
        layer = _without_role(last)
    return (layer, leaf.value.dtype, tuple(leaf.value.shape))


def _without_role(name: str) -> str:
    """`past_k0` and `past_v1` are alike; so are `key` and `value`."""
    return re.sub(r"(?<![a-z])(keys?|values?|k|v)(?![a-z])", "kv", re.sub(r"\d+", "#", name))


def spread(sizes: Mapping[Place, int], bundled: Mapping[Place, tuple[Place, ...]]) -> dict[Place, int]:
    """Sizes of places for all that they stand for."""
    return {member: size for place, size in sizes.items() for member in bundled.get(place, (place,))}
