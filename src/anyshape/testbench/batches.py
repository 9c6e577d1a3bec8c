"""Batches: which dims are one, by their names and by where they stand; and whether a file mixes their samples.

Only dims that are named like a batch count: to mix nodes, tokens or points is what models are for. Samples are not
mixed where f(cat(a, b)) is cat(f(a), f(b)).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import numpy as np

from anyshape.runtime.session import Array, Feeds
from anyshape.sizes.notation import Expression
from anyshape.testbench.judgement import are_close, moved_by_rounding

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


# ---- samples together and apart


def taken(value: Array, axes: Iterable[int], part: slice) -> Array:
    """A part of some axes."""
    for axis in axes:
        value = value[(slice(None),) * axis + (part,)]
    return value


def first_mixed_output(
    run: Callable[[Feeds], list[Array]], whole: Feeds, dim: str, rows: Mapping[str, Row], sizes: tuple[int, int]
) -> int | None:
    """An output of a batch of two parts of these sizes that is not those of the parts side by side."""
    axes = {name: [axis for axis in [axis_of(dim, row)] if axis is not None] for name, row in rows.items()}
    first, total = sizes[0], sum(sizes)
    parts = [
        {name: taken(value, axes[name], part) for name, value in whole.items()}
        for part in (slice(0, first), slice(first, total))
    ]
    together, apart = run(whole), [run(part) for part in parts]

    def is_mixed(index: int) -> bool:
        ones = [outputs[index] for outputs in apart]
        axis = _axis_of_samples(together[index], ones, sizes)
        if axis is None:
            return False
        joined = np.concatenate(ones, axis)
        return not are_close(joined, together[index], lambda number: run(moved_by_rounding(whole, number))[index])

    return next((index for index in range(len(together)) if is_mixed(index)), None)


def _axis_of_samples(whole: Array, parts: Sequence[Array], sizes: tuple[int, int]) -> int | None:
    """The only axis along which an output has one entry, or several, for each sample."""
    shapes = [getattr(one, "shape", ()) for one in (whole, *parts)]
    if len({len(shape) for shape in shapes}) != 1:
        return None
    moving = [axis for axis, found in enumerate(zip(*shapes, strict=True)) if len(set(found)) > 1]
    if len(moving) != 1:
        return None
    (axis,) = moving
    each = {shape[axis] / count for shape, count in zip(shapes, (sum(sizes), *sizes), strict=True)}
    return axis if len(each) == 1 else None
