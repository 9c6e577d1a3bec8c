"""Sizes at which a formula of a file comes so close to a whole number that rounding decides which one it becomes.

`int(math.log(n, 3))` is 4 at n = 243, since Python's quotient is 4.999...; `n * 0.7`, a factor of a Resize and the
length of a Range round likewise. Each formula between the shapes of a file and such a place is computed for all
declared sizes at once, in float32, in float64 and with more digits: where these disagree, a file and its model may.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx_ir as ir

from anyshape.onnxfile.graph import attribute, every_node
from anyshape.onnxfile.size_formulas import Array, SizeFormulas, unless_unknown
from anyshape.sizes import budgets
from anyshape.sizes.columns import joined_columns, smallest_of
from anyshape.sizes.notation import SizeRange, Sizes

_KINDS = (np.float32, np.float64, np.longdouble)
"""As a careless file computes, as Python does, and nearly exactly; the last has no more digits on some machines."""


def rounded_sizes(
    model: ir.Model, ranges: Mapping[str, SizeRange], traced: Mapping[str, int], seed: int
) -> list[Sizes]:
    """For each such place of the file the smallest sizes at which rounding decides; the largest where ranges end."""
    few = {dim: np.asarray([declared.lo, traced[dim]]) for dim, declared in ranges.items()}
    known = SizeFormulas(few, np.float64)
    places = [node for node in every_node(model.graph, *_ROUNDINGS) if _whole_numbers_at(known, node) is not None]
    columns = _points_of(ranges, traced, seed) if places and ranges else {}
    found: dict[tuple[int, ...], Sizes] = {}
    is_closed = not any(declared.is_open for declared in ranges.values())
    moved: Array = sum((column != traced[dim]).astype(int) for dim, column in columns.items())
    for points in _disputed_points(places, columns):
        # a dim that does not matter stays as it was traced
        chosen = [index for index in points if moved[index] <= 1] or points
        for index in (*chosen[: budgets.ROUNDED_SIZES_OF_ONE], *(chosen[-1:] if is_closed else ())):
            sizes = {dim: int(column[index]) for dim, column in columns.items()}
            found.setdefault(tuple(sizes.values()), sizes)
    return sorted(found.values(), key=lambda sizes: sum(sizes.values()))[: budgets.MOST_ROUNDED_SIZES]


def _points_of(ranges: Mapping[str, SizeRange], traced: Mapping[str, int], seed: int) -> dict[str, Array]:
    """Every size of each dim with the others as they were traced, and dims together at random."""
    most = budgets.MOST_POINTS // (len(ranges) + 1)
    lines = {dim: smallest_of(declared, most) for dim, declared in ranges.items()}
    chance = np.random.default_rng(seed)
    rows = [{**traced, dim: line} for dim, line in lines.items()]
    if len(lines) > 1:
        rows.append(
            {
                dim: chance.choice(line[: budgets.LARGEST_SPREAD], budgets.POINTS_AT_ONCE // 2)
                for dim, line in lines.items()
            }
        )
    return joined_columns(rows)


def _disputed_points(places: Sequence[ir.Node], columns: Mapping[str, Array]) -> list[list[int]]:
    """Where the digits that are kept decide: for each place those by Python's digits, and those by fewer."""
    found: list[list[int]] = [[] for _ in range(2 * len(places))]
    order = np.argsort(sum(columns.values()), kind="stable") if columns else np.zeros(0, np.int64)
    widths, start = dict.fromkeys(range(len(places)), 0), 0
    # a few first: they tell how many numbers a place makes at each point, and where it makes many, fewer are computed
    for count in (
        budgets.POINTS_AT_ONCE // 16,
        *[budgets.POINTS_AT_ONCE] * (budgets.MOST_POINTS // budgets.POINTS_AT_ONCE + 1),
    ):
        rows = order[start : start + count]
        left = [index for index, width in widths.items() if (start + len(rows)) * width <= budgets.MOST_POINTS]
        if not len(rows) or not left:
            break
        known = [SizeFormulas({dim: column[rows] for dim, column in columns.items()}, kind) for kind in _KINDS]
        for index in left:
            coarse, double, fine = (_whole_numbers_at(formulas, places[index]) for formulas in known)
            if coarse is None or double is None or fine is None:
                continue
            widths[index] = double.shape[-1]
            finite = np.isfinite(coarse) & np.isfinite(double) & np.isfinite(fine)
            for side, other in enumerate((fine, coarse)):
                points = np.flatnonzero(((double != other) & finite).any(axis=-1))
                found[2 * index + side] += rows[points].tolist()
        start += count
    return found


def _whole_numbers_at(formulas: SizeFormulas, node: ir.Node) -> Array | None:
    """What a place that rounds makes of its operands; None where these are no fractions that sizes make."""
    return unless_unknown(lambda: _ROUNDINGS[node.op_type](formulas, node))


def _fractions(formulas: SizeFormulas, value: ir.Value | None) -> Array:
    numbers = formulas.of(value)
    if numbers.dtype.kind != "f" or len(numbers) == 1:
        raise KeyError("no fractions, or the same at all sizes")
    return numbers


def _steps(formulas: SizeFormulas, node: ir.Node) -> Array:
    """The length of a Range."""
    start, end, step = (formulas.of(one) for one in node.inputs)
    length = (end - start) / step
    if length.dtype.type is not formulas.kind or len(length) == 1:
        raise KeyError("whole numbers alone")
    return np.ceil(length)


def _sizes_of_resize(formulas: SizeFormulas, node: ir.Node) -> Array:
    """The sizes that a Resize makes by its factors; else, for each, whether its nearest pixels are torch's."""
    shape = None if node.inputs[0] is None else node.inputs[0].shape
    if shape is None:
        raise KeyError(node.name)
    before = [formulas.size_of(dim) for dim in shape]
    if len(node.inputs) < 4 or node.inputs[3] is None:
        factors = formulas.of(node.inputs[2])
        sizes = [np.floor(n.astype(formulas.kind) * factor) for n, factor in zip(before, factors[0], strict=True)]
        return np.stack(np.broadcast_arrays(*sizes), axis=-1)
    after = formulas.of(node.inputs[3])
    if attribute(node, "mode", b"nearest") not in ("nearest", b"nearest"):
        raise KeyError("blended pixels change little")
    pixels = [_last_wrong_pixel(n, after[:, axis], formulas.kind) for axis, n in enumerate(before)]
    return np.stack(np.broadcast_arrays(*pixels), axis=-1)


def _last_wrong_pixel(before: Array, after: Array, kind: type) -> Array:
    """For each pair of sizes the last place whose pixel, as a Resize finds it in this type, is not the exact one."""
    before, after = np.broadcast_arrays(before, after)
    _, first, where = np.unique(before * budgets.LARGEST_SIZE + after, return_index=True, return_inverse=True)
    found = np.zeros(len(first))
    for index in np.argsort(first)[: budgets.MOST_PAIRS_RESIZED]:
        n, m = before[first[index]], after[first[index]]
        places = np.arange(min(m, budgets.LARGEST_SPREAD))
        wrong = np.floor(places.astype(kind) / (kind(m) / kind(n))).astype(np.int64) != places * n // m
        found[index] = places[wrong][-1] if wrong.any() else 0
    return found[where.reshape(-1)]


def _rounded_by(function: Callable[[Array], Array]) -> Callable[[SizeFormulas, ir.Node], Array]:
    return lambda formulas, node: function(_fractions(formulas, node.inputs[0]))


def _cast_to_whole(formulas: SizeFormulas, node: ir.Node) -> Array:
    if not ir.DataType(attribute(node, "to")).is_integer():
        raise KeyError("stays a fraction")
    return np.trunc(_fractions(formulas, node.inputs[0]))


_ROUNDINGS: Mapping[str, Callable[[SizeFormulas, ir.Node], Array]] = {
    "Floor": _rounded_by(np.floor),
    "Ceil": _rounded_by(np.ceil),
    "Round": _rounded_by(np.round),
    "Cast": _cast_to_whole,
    "Range": _steps,
    "Resize": _sizes_of_resize,
}
