"""Which dims are a batch: by their names, and by where they stand.

Only dims that are named like a batch count: to mix nodes, tokens or points is what models are for.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from anyshape.sizes.notation import Expression

Row = Sequence[Expression | None]
"""The axes of one input, None where one is static."""

_BATCH = re.compile(r"(?!.*_(per|in)_batch)(b|bs|bsz|.*batch(_?(size|dim|axis))?)", re.IGNORECASE)


def batch_dims(dims: Iterable[str], rows: Collection[Row]) -> list[str]:
    """Dims named like a batch that stand alone on an axis wherever they stand, and once in each input."""
    return [dim for dim in dims if _is_named_like_a_batch(dim, rows) and _can_be_cut(dim, rows)]


def _is_named_like_a_batch(dim: str, rows: Collection[Row]) -> bool:
    """`batch`, `batch_size`, `bs`, `B`, `text_batch`; `N` and `n` only in front of all inputs, as of images."""
    if dim not in ("n", "N"):
        return _BATCH.fullmatch(dim) is not None
    # `n 3` may be a set of points, `n` a signal: N is torch's own word for a batch, n needs more axes
    least = 2 if dim == "N" else 3
    return all(axis_of(dim, row) == 0 for row in rows) and any(len(row) >= least for row in rows)


def _can_be_cut(dim: str, rows: Collection[Row]) -> bool:
    held = [[e for e in row if e is not None and dim in e.names] for row in rows]
    if not any(held) or any(len(row) > 1 or not all(e.is_name for e in row) for row in held):
        return False
    # lengths or offsets of samples that lie one behind the other in another input: that one cannot be cut
    whole = [row for row, found in zip(rows, held, strict=True) if not found and any(row)]
    return not whole or any(len(row) > 1 for row, found in zip(rows, held, strict=True) if found)


def axis_of(dim: str, row: Row) -> int | None:
    """The axis of an input that is this dim."""
    return next((axis for axis, e in enumerate(row) if e is not None and e.text == dim), None)
