"""Operators on tensors of broadcast shapes, and Concat: where one operand is free, the others follow.

So does a size that is used as a value: a sum divided by the number of its terms, which shapes alone cannot show.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import onnx_ir as ir
import sympy

from anyshape.freeing.growth import grow_fixed
from anyshape.freeing.records import SETTLED
from anyshape.freeing.walk import BROADCASTING, Rule, Shapes, Walk, axes_of, broadcast
from anyshape.onnxfile.graph import attribute
from anyshape.sizes import budgets
from anyshape.sizes.expressions import Shape, Size, product, spelled


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
    free = _free_sizes(walk, node, list(shapes.values()), range(-rank, -last))
    for place, shape in shapes.items():
        grow_fixed(walk, node, place, {axis + len(shape): size for axis, size in free.items()}, broadcasts=True)


def _free_sizes(walk: Walk, node: ir.Node, shapes: Sequence[Shape], axes: Iterable[int]) -> dict[int, Size]:
    """Axis, counted from the end -> the size of the first operand that is free there."""
    sizes = {axis: [shape[axis] for shape in shapes if len(shape) >= -axis] for axis in axes}
    free = {axis: walk.free_size(node, row) for axis, row in sizes.items()}
    return {axis: size for axis, size in free.items() if size is not None}


def concat(walk: Walk, node: ir.Node) -> Shapes:
    """Along every axis but its own, all operands have one size."""
    shapes = [walk.shape(value) for value in node.inputs]
    if any(shape is None for shape in shapes) or not shapes or not shapes[0]:
        return None
    rows: list[Shape] = [shape for shape in shapes if shape is not None]
    rank = len(rows[0])
    own = int(attribute(node, "axis", 0)) % rank
    free = _free_sizes(walk, node, rows, (axis - rank for axis in range(rank) if axis != own))
    for place in range(len(rows)):
        grow_fixed(walk, node, place, {axis + rank: size for axis, size in free.items()}, broadcasts=False)
    return None


RULES: dict[str, Rule] = {**dict.fromkeys(BROADCASTING, elementwise), "Concat": concat}

# ---- sizes used as values

_CLOSE = 1e-6
"""Exporters write 1/196 in float32."""
_BETWEEN = ("Cast", "Reshape", "Unsqueeze", "Squeeze", "Identity", "Mul", "Div")
_REDUCTIONS = ("ReduceSum", "ReduceMean", "ReduceSumSquare", "ReduceL1")


def size_as_value(walk: Walk, node: ir.Node) -> None:
    """Replace a scalar that is a free size; one that only happens to equal it is a matter of choice."""
    if node.op_type not in ("Div", "Mul", "Sub", "Add", "Pow") or len(node.inputs) != 2:
        return
    place, scalar = _scalar_operand(walk, node)
    if scalar is None or place in node.meta.get(SETTLED, ()):
        return
    terms = _number_of_terms(walk, node.inputs[1 - place])
    meant = None if terms is None else _size_meant(walk, node, scalar, terms)
    if meant is not None:
        _replace_scalar(walk, node, place, meant)
        return
    size = walk.dims.namesake(scalar)
    if size is not None and walk.chooser.choose((False, True)):
        _replace_scalar(walk, node, place, size)
    elif size is not None:
        walk.note(node, f"the number {scalar:g} is kept, though `{spelled(size)}` was {scalar:g} in the file")


def _scalar_operand(walk: Walk, node: ir.Node) -> tuple[int, float | None]:
    for place in (1, 0) if node.op_type in ("Mul", "Add") else (1,):
        value = node.inputs[place]
        if value is None or (walk.shape(node.inputs[1 - place]) or ()) == ():
            continue
        array = walk.constant(value)
        if array is not None and array.size == 1 and array.dtype.kind == "f" and math.isfinite(float(array.flat[0])):
            return place, float(array.flat[0])
    return 0, None


def _number_of_terms(walk: Walk, value: ir.Value | None) -> Size | None:
    """How many terms a sum or a mean has that the value comes from."""
    node = value.producer() if value is not None else None
    for _ in range(budgets.FARTHEST_DIVISOR):
        if node is None or node.op_type not in _BETWEEN:
            break
        node = node.inputs[0].producer() if node.inputs[0] is not None else None
    if node is None or node.op_type not in _REDUCTIONS:
        return None
    shape = walk.shape(node.inputs[0])
    if shape is None:
        return None
    axes = axes_of(walk, node, len(shape))
    if axes is None:
        axes = [] if attribute(node, "noop_with_empty_axes", 0) else list(range(len(shape)))
    count = product(shape[axis] for axis in axes)
    return count if walk.is_free(count) else None


def _size_meant(walk: Walk, node: ir.Node, scalar: float, terms: Size) -> Size | None:
    """The size that a factor or divisor of a sum is: its terms, one less (of a variance), or the ratio of the two."""
    n = walk.at_file(terms)
    if n is None or n < 2 or scalar == 0:
        return None
    meanings = {terms: n, 1 / terms: 1 / n}
    if n > 2:
        meanings |= {terms - 1: n - 1, 1 / (terms - 1): 1 / (n - 1), terms / (terms - 1): n / (n - 1)}
    close = [size for size, value in meanings.items() if math.isclose(scalar, value, rel_tol=_CLOSE)]
    return close[0] if node.op_type in ("Mul", "Div") and close else None


def _replace_scalar(walk: Walk, node: ir.Node, place: int, size: Size) -> None:
    """The scalar as it follows from the sizes; a ratio of two is divided in the scalar's own type."""
    old = node.inputs[place]
    assert old is not None
    assert old.dtype is not None
    build, shape = walk.builder, walk.shape(old) or ()
    parts = [
        build.cast(build.reshaped(build.size(part), [1] * len(shape), shape), old.dtype, shape)
        for part in sympy.fraction(size)
    ]
    value = parts[0] if sympy.fraction(size)[1] == 1 else build.node("Div", parts, shape, dtype=old.dtype)
    walk.replace(node, place, value, f"the number {walk.constant(old).flat[0]:g} became `{spelled(size)}`")
