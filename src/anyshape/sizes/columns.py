"""Columns of sizes: many choices of sizes at once, for whoever computes a formula at all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from anyshape.sizes.notation import SizeRange, Sizes

Columns = Mapping[str, Any]
"""For each dim its sizes, or one size for all."""
Rows = np.ndarray[Any, np.dtype[np.bool_]]


def smallest_of(declared: SizeRange, most: int) -> Any:
    """The smallest sizes of a range, as a column."""
    if declared.values is not None:
        return np.asarray(declared.values[:most], dtype=np.int64)
    end = declared.lo + most * declared.step
    return np.arange(declared.lo, end if declared.hi is None else min(end, declared.hi + 1), declared.step)


def grid_of(dims: Iterable[str], sizes: Iterable[Any]) -> Columns:
    """All of them with each other."""
    axes = np.meshgrid(*(np.asarray(one, dtype=np.int64) for one in sizes), indexing="ij")
    return {dim: axis.ravel() for dim, axis in zip(dims, axes, strict=True)}


def joined_columns(rows: Sequence[Columns]) -> dict[str, Any]:
    """Several sets of sizes, one after the other; in each, a dim may have one size for all."""
    lengths = [max(np.size(column) for column in row.values()) for row in rows]
    return {
        dim: np.concatenate([np.broadcast_to(row[dim], length) for row, length in zip(rows, lengths, strict=True)])
        for dim in rows[0]
    }


def telling_rows(columns: Columns, kept: Rows, base: Sizes) -> list[int]:
    """The smallest one and the nearest to the base; where all dims are at least 3, if may be, since 1 hides bugs."""
    places = np.flatnonzero(kept)
    if not len(places):
        return []
    total = sum(column[places].astype(np.float64) for column in columns.values())
    away = sum(abs(column[places].astype(np.float64) - base[dim]) for dim, column in columns.items())
    hides = np.min([column[places] for column in columns.values()], axis=0) < 3
    first, *others = np.lexsort((total, hides))[:2]
    second = next((row for row in np.lexsort((total, away, hides))[:2] if row != first), None)
    chosen = [first, *others] if second is None else [first, second]
    return [int(places[row]) for row in chosen]
