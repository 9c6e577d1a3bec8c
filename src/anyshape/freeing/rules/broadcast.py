"""Operators on tensors of broadcast shapes, and Concat: where one operand is free, the others follow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import onnx_ir as ir

from anyshape.freeing.families import BROADCASTING, broadcast
from anyshape.freeing.growth import grow_input
from anyshape.freeing.growth_formulas import Wants
from anyshape.freeing.rules.broadcast_values import size_as_value
from anyshape.freeing.walk import Walk, attribute
from anyshape.freeing.walk_rule import Rule, Shapes
from anyshape.sizes.expressions import Shape, Size, is_number


def elementwise(walk: Walk, node: ir.Node) -> Shapes:
    shapes = [walk.shape(value) for value in node.inputs if value is not None]
    if any(shape is None for shape in shapes):
        return None
    align(walk, node, range(len(node.inputs)))
    size_as_value(walk, node)
    return [broadcast([walk.shape(value) or () for value in node.inputs if value is not None])]


def align(walk: Walk, node: ir.Node, places: Sequence[int], last: int = 0) -> None:
    """Grow fixed operands along the axes where another operand is free; the `last` axes are none of ours."""
    shapes = {place: walk.shape(node.inputs[place]) or () for place in places if node.inputs[place] is not None}
    rank = max((len(shape) for shape in shapes.values()), default=0)
    free = {
        axis: size
        for axis in range(-rank, -last)
        if (size := _free_size(walk, node, shapes.values(), axis)) is not None
    }
    for place, shape in shapes.items():
        wants: dict[int, Size] = {
            axis + len(shape): size
            for axis, size in free.items()
            if len(shape) >= -axis and is_number(shape[axis]) and shape[axis] != 1
        }
        if wants:
            grow_input(walk, node, place, wants, broadcasts=True)


def _free_size(walk: Walk, node: ir.Node, shapes: Iterable[Shape], axis: int) -> Size | None:
    sizes = [shape[axis] for shape in shapes if len(shape) >= -axis]
    walk.refuse_disagreement(node, sizes)
    return next((size for size in sizes if walk.is_free(size)), None)


def concat(walk: Walk, node: ir.Node) -> Shapes:
    """Along every axis but its own, all operands have one size."""
    shapes = [walk.shape(value) for value in node.inputs]
    if any(shape is None for shape in shapes) or not shapes or not shapes[0]:
        return None
    rows: list[Shape] = [shape for shape in shapes if shape is not None]
    own = int(attribute(node, "axis", 0)) % len(rows[0])
    wants: Wants = {
        axis: size
        for axis in range(len(rows[0]))
        if axis != own and (size := _free_size(walk, node, rows, axis - len(rows[0]))) is not None
    }
    for place, shape in enumerate(rows):
        fixed = {axis: size for axis, size in wants.items() if is_number(shape[axis])}
        if fixed:
            grow_input(walk, node, place, fixed, broadcasts=False)
    return None


RULES: dict[str, Rule] = {**dict.fromkeys(BROADCASTING, elementwise), "Concat": concat}
