"""Inputs that say something about others, such as masks and positions: as long as these, and told by their names."""

from __future__ import annotations

import re
from collections.abc import Sequence

from anyshape.model.proposal.meanings import words_of
from anyshape.model.proposal.probe import Place

_FOLLOWS = re.compile(r"mask|position|bias|padding|(^|[._])(pos|pad|valid)([._\d]|$)")


def follows_by_name(leaf: str) -> bool:
    return _FOLLOWS.search(leaf.lower()) is not None


def by_input(places: Sequence[Place]) -> list[list[Place]]:
    """The places of one input after the other, each with those of its mask; nothing where there is one input alone."""
    roots = list(dict.fromkeys(_root(leaf) for leaf, _ in places if not follows_by_name(leaf)))
    return [[place for place in places if root in _owners(place[0], roots)] for root in roots] if roots[1:] else []


def _owners(leaf: str, roots: Sequence[str]) -> list[str]:
    """The inputs that a leaf belongs to: the one that it stands in, or those whose names share most words with it."""
    if _root(leaf) in roots:
        return [_root(leaf)]
    shared = [len(set(words_of(leaf)) & set(words_of(root))) for root in roots]
    return [root for root, count in zip(roots, shared, strict=True) if count and count == max(shared)]


def _root(leaf: str) -> str:
    return leaf.partition(".")[0]
