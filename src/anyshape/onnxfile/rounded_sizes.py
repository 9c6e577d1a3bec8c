"""Sizes at which a formula of a file comes so close to a whole number that rounding decides which one it becomes.

`int(math.log(n, 3))` is 4 at n = 243, since Python's quotient is 4.999...; `n * 0.7`, a factor of a Resize and the
length of a Range round likewise. Each formula between the shapes of a file and such a place is computed for all
declared sizes at once, in float32, in float64 and with more digits: where these disagree, a file and its model may.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
import onnx_ir as ir

from anyshape.onnxfile.graph import attribute, constant_of, every_node
from anyshape.sizes import budgets, expressions
from anyshape.sizes.notation import SizeRange, Sizes
from anyshape.sizes.settlement import joined_columns, smallest_of

Array = Any
"""A row of numbers for each choice of sizes; how a value is laid out otherwise does not count here."""

_KINDS = (np.float32, np.float64, np.longdouble)
"""As a careless file computes, as Python does, and nearly exactly; the last has no more digits on some machines."""


def rounded_sizes(
    model: ir.Model, ranges: Mapping[str, SizeRange], traced: Mapping[str, int], seed: int
) -> list[Sizes]:
    """For each such place of the file the smallest sizes at which rounding decides; the largest where ranges end."""
    few = {dim: np.asarray([declared.lo, traced[dim]]) for dim, declared in ranges.items()}
    known = SizeFormulas(few, np.float64)
    places = [node for node in every_node(model.graph, *_ROUNDINGS) if known.whole_numbers_at(node) is not None]
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
            coarse, double, fine = (formulas.whole_numbers_at(places[index]) for formulas in known)
            if coarse is None or double is None or fine is None:
                continue
            widths[index] = double.shape[-1]
            finite = np.isfinite(coarse) & np.isfinite(double) & np.isfinite(fine)
            for side, other in enumerate((fine, coarse)):
                points = np.flatnonzero(((double != other) & finite).any(axis=-1))
                found[2 * index + side] += rows[points].tolist()
        start += count
    return found


class SizeFormulas:
    """What the values of a file are at many sizes, with fractions in one type; KeyError for all but formulas."""

    def __init__(self, columns: Mapping[str, Array], kind: type = np.float64) -> None:
        self._columns = {expressions.dim_symbol(dim): column for dim, column in columns.items()}
        self._kind = kind
        self._known: dict[ir.Value, Array] = {}

    def whole_numbers_at(self, node: ir.Node) -> Array | None:
        """What a place that rounds makes of its operands; None where these are no fractions that sizes make."""
        return self._unless_unknown(lambda: _ROUNDINGS[node.op_type](self, node))

    def decision_of(self, node: ir.Node) -> Array | None:
        """What a node gives; None where not sizes alone decide."""
        return self._unless_unknown(lambda: self.of(node.outputs[0]))

    @staticmethod
    def _unless_unknown(compute: Callable[[], Array]) -> Array | None:
        try:
            with np.errstate(all="ignore"):
                return compute()
        except (KeyError, TypeError, ValueError, IndexError, OverflowError, RecursionError):
            return None

    def of(self, value: ir.Value | None) -> Array:
        if value is None:
            raise KeyError(value)
        if value not in self._known:
            constant = constant_of(value)
            self._known[value] = self._result_of_node(value) if constant is None else self._literal_numbers(constant)
        return self._known[value]

    def _literal_numbers(self, numbers: Array) -> Array:
        """A literal in float32 is taken for the decimal number that it was written as."""
        if numbers.size > budgets.LONGEST_SHORT_CONSTANT:
            raise KeyError(numbers.size)
        if numbers.dtype.kind != "f":
            return numbers.reshape(1, -1).astype(np.int64)
        return np.asarray([[self._kind(str(number)) for number in numbers.ravel()]])

    def _result_of_node(self, value: ir.Value) -> Array:
        node = value.producer()
        if node is None:
            raise KeyError(value.name)
        compute = _LAYOUTS.get(node.op_type)
        return _FUNCTIONS[node.op_type](*map(self.of, node.inputs)) if compute is None else compute(self, node)

    def sizes_read(self, node: ir.Node) -> Array:
        (source,) = node.inputs
        shape = None if source is None else source.shape
        if shape is None:
            raise KeyError(node.name)
        dims = list(shape)[attribute(node, "start", 0) : attribute(node, "end", None)]
        return np.stack(np.broadcast_arrays(*map(self.size_of, dims)), axis=-1)

    def cast(self, node: ir.Node) -> Array:
        is_float = ir.DataType(attribute(node, "to")).is_floating_point()
        return self.of(node.inputs[0]).astype(self._kind if is_float else np.int64)

    def gathered(self, node: ir.Node) -> Array:
        return self.of(node.inputs[0])[:, self.of(node.inputs[1])[0]]

    def sliced(self, node: ir.Node) -> Array:
        start, end = (int(self.of(one)[0, 0]) for one in node.inputs[1:3])
        return self.of(node.inputs[0])[:, start:end]

    def joined(self, node: ir.Node) -> Array:
        parts = [self.of(one) for one in node.inputs]
        rows = max(len(part) for part in parts)
        return np.concatenate([np.broadcast_to(part, (rows, part.shape[1])) for part in parts], axis=1)

    def size_of(self, dim: int | ir.SymbolicDim) -> Array:
        return np.atleast_1d(expressions.evaluate(expressions.from_dim(dim), self._columns)).astype(np.int64)

    def fractions(self, value: ir.Value | None) -> Array:
        numbers = self.of(value)
        if numbers.dtype.kind != "f" or len(numbers) == 1:
            raise KeyError("no fractions, or the same at all sizes")
        return numbers

    def steps(self, node: ir.Node) -> Array:
        """The length of a Range."""
        start, end, step = (self.of(one) for one in node.inputs)
        length = (end - start) / step
        if length.dtype.type is not self._kind or len(length) == 1:
            raise KeyError("whole numbers alone")
        return np.ceil(length)

    def resized(self, node: ir.Node) -> Array:
        """The sizes that a Resize makes by its factors; else, for each, whether its nearest pixels are torch's."""
        shape = None if node.inputs[0] is None else node.inputs[0].shape
        if shape is None:
            raise KeyError(node.name)
        before = [self.size_of(dim) for dim in shape]
        if len(node.inputs) < 4 or node.inputs[3] is None:
            factors = self.of(node.inputs[2])
            sizes = [np.floor(n.astype(self._kind) * factor) for n, factor in zip(before, factors[0], strict=True)]
            return np.stack(np.broadcast_arrays(*sizes), axis=-1)
        after = self.of(node.inputs[3])
        if attribute(node, "mode", b"nearest") not in ("nearest", b"nearest"):
            raise KeyError("blended pixels change little")
        pixels = [_last_wrong_pixel(n, after[:, axis], self._kind) for axis, n in enumerate(before)]
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
    return lambda formulas, node: function(formulas.fractions(node.inputs[0]))


def _cast_to_whole(formulas: SizeFormulas, node: ir.Node) -> Array:
    if not ir.DataType(attribute(node, "to")).is_integer():
        raise KeyError("stays a fraction")
    return np.trunc(formulas.fractions(node.inputs[0]))


_ROUNDINGS: Mapping[str, Callable[[SizeFormulas, ir.Node], Array]] = {
    "Floor": _rounded_by(np.floor),
    "Ceil": _rounded_by(np.ceil),
    "Round": _rounded_by(np.round),
    "Cast": _cast_to_whole,
    "Range": SizeFormulas.steps,
    "Resize": SizeFormulas.resized,
}


_LAYOUTS: Mapping[str, Callable[[SizeFormulas, ir.Node], Array]] = {
    "Shape": SizeFormulas.sizes_read,
    "Size": lambda formulas, node: formulas.sizes_read(node).prod(axis=-1, keepdims=True),
    "Cast": SizeFormulas.cast,
    **dict.fromkeys(
        ("Squeeze", "Unsqueeze", "Reshape", "Identity"), lambda formulas, node: formulas.of(node.inputs[0])
    ),
    "Gather": SizeFormulas.gathered,
    "Slice": SizeFormulas.sliced,
    "Concat": SizeFormulas.joined,
}
"""What reads sizes, and what puts numbers at other places."""


def _quotient(left: Array, right: Array) -> Array:
    """ONNX divides whole numbers towards zero."""
    if left.dtype.kind == "f":
        return left / right
    return np.where(right != 0, np.abs(left) // np.maximum(np.abs(right), 1) * np.sign(left) * np.sign(right), 0)


def _fold_by(function: Callable[[Array, Array], Array]) -> Callable[..., Array]:
    return lambda *parts: reduce(function, parts)


_FUNCTIONS: Mapping[str, Callable[..., Array]] = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": _quotient, "Mod": np.mod, "Pow": np.power,
    "Neg": np.negative, "Abs": np.abs, "Sqrt": np.sqrt, "Log": np.log, "Exp": np.exp, "Sin": np.sin, "Cos": np.cos,
    "Tanh": np.tanh, "Floor": np.floor, "Ceil": np.ceil, "Round": np.round, "Min": _fold_by(np.minimum),
    "Max": _fold_by(np.maximum), "Where": np.where, "Less": np.less, "Greater": np.greater, "Equal": np.equal,
    "LessOrEqual": np.less_equal, "GreaterOrEqual": np.greater_equal, "And": np.logical_and, "Or": np.logical_or,
    "Xor": np.logical_xor, "Not": np.logical_not, "BitwiseAnd": np.bitwise_and, "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor,
}  # fmt: skip
