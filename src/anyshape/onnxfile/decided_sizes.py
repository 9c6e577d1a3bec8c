"""Sizes at which a file decides otherwise than at the traced ones.

What compares sizes in a file (`b == 2 * a + 3`, `n > 640`) is computed for many sizes at once: a decision that is
another at some of them is worth a run there, as a literal is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import onnx_ir as ir

from anyshape.onnxfile.baked_sizes import size_literals
from anyshape.onnxfile.graph import every_node
from anyshape.onnxfile.size_formulas import Array, SizeFormulas
from anyshape.sizes import budgets
from anyshape.sizes.columns import grid_of, joined_columns, smallest_of, telling_rows
from anyshape.sizes.notation import SizeRange, Sizes

_DECISIONS = ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "And", "Or", "Xor", "Not")


def decided_sizes(model: ir.Model, ranges: Mapping[str, SizeRange], traced: Mapping[str, int]) -> list[Sizes]:
    """For each decision up to two sizes at which it is another one, the smallest and the nearest."""
    decisions = _decisions(model, traced)
    found: dict[tuple[int, ...], Sizes] = {}
    columns = _points(ranges, traced, sorted(size_literals(model))) if decisions else {}
    for is_other in _answers_otherwise(decisions, columns):
        for row in telling_rows(columns, is_other, traced):
            sizes = {dim: int(column[row]) for dim, column in columns.items()}
            found.setdefault(tuple(sizes.values()), sizes)
    return sorted(found.values(), key=lambda sizes: sum(sizes.values()))[: budgets.MOST_DECIDED_SIZES]


def otherwise_at(model: ir.Model, traced: Sizes, run: Sequence[Sizes]) -> list[list[Sizes]]:
    """For each decision the sizes at which it is another one, of those that were run."""
    columns = {dim: np.asarray([sizes[dim] for sizes in run]) for dim in traced}
    found = _answers_otherwise(_decisions(model, traced), columns)
    return [[sizes for sizes, is_other in zip(run, rows, strict=True) if is_other] for rows in found]


def _decisions(model: ir.Model, traced: Mapping[str, int]) -> list[tuple[ir.Node, Array]]:
    """What compares sizes, and what comes of it at the traced ones."""
    at_traced = SizeFormulas({dim: np.asarray([size, size]) for dim, size in traced.items()})
    answers = ((node, at_traced.numbers_of(node.outputs[0])) for node in every_node(model.graph, *_DECISIONS))
    return [(node, answer[0]) for node, answer in answers if answer is not None and len(answer) > 1]


def _answers_otherwise(decisions: Sequence[tuple[ir.Node, Array]], columns: Mapping[str, Array]) -> Iterator[Array]:
    """For each decision whether it is another one, row by row."""
    formulas = SizeFormulas(columns)
    for node, answer in decisions:
        at_points = formulas.numbers_of(node.outputs[0])
        if at_points is not None and len(at_points) == len(next(iter(columns.values()))):
            yield (at_points != answer).any(axis=-1)


def _points(ranges: Mapping[str, SizeRange], traced: Mapping[str, int], literals: Sequence[int]) -> dict[str, Array]:
    """The smallest sizes of all dims, and those around the file's numbers, with each other; many of each alone."""
    few = round(budgets.POINTS_AT_ONCE ** (1 / len(ranges)))
    around = [number + step for number in literals[: few // 6] for step in (0, 1, -1)]
    telling = {dim: [size for size in around if size in declared] for dim, declared in ranges.items()}
    sizes = [
        np.unique([*smallest_of(declared, few - len(telling[dim])), *telling[dim]]) for dim, declared in ranges.items()
    ]
    many = budgets.POINTS_AT_ONCE // len(ranges)
    lines = [{**traced, dim: smallest_of(declared, many)} for dim, declared in ranges.items()]
    return joined_columns([grid_of(ranges, sizes), *lines])
