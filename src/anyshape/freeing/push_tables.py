"""Nodes that repeat, join or pick: growth goes to what says how often, or to the rows that are picked."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from anyshape.freeing.constant_patterns import is_uniform, ramp_step
from anyshape.freeing.families import axes_of
from anyshape.freeing.growth import grown, sliced
from anyshape.freeing.growth_formulas import Wants
from anyshape.freeing.push import PushBack, Pushed, again, input_grown
from anyshape.freeing.walk import Walk, attribute
from anyshape.sizes.expressions import Size, is_number, number


def _expand(walk: Walk, node: ir.Node, wants: Wants) -> Pushed:
    target, data = walk.numbers(node.inputs[1]), walk.shape(node.inputs[0])
    out = walk.shape(node.outputs[0])
    if target is None or data is None or out is None:
        return None
    shift, lead = len(out) - len(data), len(out) - len(target)
    inner = {a - shift: s for a, s in wants.items() if a >= shift and data[a - shift] != 1}
    new = input_grown(walk, node, inner)
    goal = [wants.get(axis + lead, size) for axis, size in enumerate(target)]
    shape = tuple(wants.get(axis, size) for axis, size in enumerate(out))
    return again(walk, node, [new, walk.builder.vector(goal)], shape)


def _tile(walk: Walk, node: ir.Node, wants: Wants) -> Pushed:
    repeats, data = walk.constant(node.inputs[1]), walk.shape(node.inputs[0])
    if repeats is None or data is None:
        return None
    if any(repeats[axis] != 1 and data[axis] != 1 for axis in wants):
        return None
    inner = {axis: size for axis, size in wants.items() if data[axis] != 1}
    new = input_grown(walk, node, inner)
    times = [wants[a] if a in wants and data[a] == 1 else number(n) for a, n in enumerate(repeats)]
    shape = tuple(wants.get(axis, size) for axis, size in enumerate(walk.shape(node.outputs[0]) or ()))
    sizes = walk.shape(new) or ()
    times = [wants[a] if a in wants and sizes[a] == 1 else n for a, n in enumerate(times)]
    return again(walk, node, [new, walk.builder.vector(times)], shape)


def _concat(walk: Walk, node: ir.Node, wants: Wants) -> Pushed:
    rank = len(walk.shape(node.outputs[0]) or ())
    if int(attribute(node, "axis", 0)) % rank in wants:
        return None
    inputs = [None if v is None else grown(walk, node, v, wants, broadcasts=False) for v in node.inputs]
    shape = tuple(wants.get(axis, size) for axis, size in enumerate(walk.shape(node.outputs[0]) or ()))
    return again(walk, node, inputs, shape)


def _gather(walk: Walk, node: ir.Node, wants: Wants) -> Pushed:
    """Axes of the output: those of the table before its indexed axis, those of the index, the rest of the table."""
    table, index = walk.shape(node.inputs[0]), walk.shape(node.inputs[1])
    if table is None or index is None:
        return None
    axis = int(attribute(node, "axis", 0)) % len(table)
    of_index = {a - axis: s for a, s in wants.items() if axis <= a < axis + len(index)}
    of_table = {a if a < axis else a - len(index) + 1: s for a, s in wants.items() if a - axis not in of_index}
    data, where = input_grown(walk, node, of_table), input_grown(walk, node, of_index, 1)
    new, places = walk.shape(data) or (), walk.shape(where) or ()
    result = again(walk, node, [data, where], (*new[:axis], *places, *new[axis + 1 :]))
    if is_number(table[axis]):
        _bound_rows(walk, node, int(table[axis]), of_index, result)
    return result


def _gather_elements(walk: Walk, node: ir.Node, wants: Wants) -> Pushed:
    """The output has the shape of the index, and the data has it, too, but for the axis that is indexed."""
    data = walk.shape(node.inputs[0])
    if data is None:
        return None
    own = int(attribute(node, "axis", 0)) % len(data)
    others = {axis: size for axis, size in wants.items() if axis != own and is_number(data[axis])}
    inputs: list[ir.Value | None] = []
    for value, part in zip(node.inputs, (others, wants), strict=True):
        inputs.append(None if value is None else grown(walk, node, value, part, broadcasts=False))
    return again(walk, node, inputs, walk.shape(inputs[1]) or ())


def _bound_rows(walk: Walk, node: ir.Node, rows: int, wants: Wants, result: ir.Value) -> None:
    """A ramp of indices comes to the end of the table."""
    index = walk.constant(node.inputs[1])
    if index is None:
        return
    for axis, size in wants.items():
        step = None if is_uniform(index, axis) else ramp_step(index, axis)
        if step is not None:
            name = node.inputs[0].name if node.inputs[0] is not None else "?"
            first = int(np.take(index, 0, axis).max())
            most = rows - first if (step == 1).all() and index.min() >= 0 else index.shape[axis]
            walk.bound(size, most, f"the table `{name}` has {rows} rows", result)


def _slice(walk: Walk, node: ir.Node, wants: Wants) -> Pushed:
    """A part of a longer table: a larger part of it."""
    if walk.opset < 10:
        return None
    data, starts, ends = node.inputs[0], walk.constant(node.inputs[1]), walk.constant(node.inputs[2])
    shape = walk.shape(data)
    if data is None or shape is None or starts is None or ends is None:
        return None
    axes = axes_of(walk, node, len(shape), 3)
    axes = list(range(len(starts))) if axes is None else axes
    steps = walk.constant(node.inputs[4]) if len(node.inputs) > 4 else None
    if steps is not None and any(steps != 1):
        return None
    passed = {a: s for a, s in wants.items() if a not in axes}
    source = input_grown(walk, node, passed)
    parts: dict[int, tuple[Size, Size]] = {}
    limits: dict[int, tuple[int, int]] = {}
    result = list(walk.shape(source) or ())
    for axis, start, end in zip(axes, starts, ends, strict=True):
        rows = result[axis]
        if axis in wants and is_number(rows):
            first = min(int(start) % int(rows) if start < 0 else int(start), int(rows))
            limits[axis] = (int(rows) - first, int(rows))
            parts[axis], result[axis] = (number(first), first + wants[axis]), wants[axis]
        else:
            parts[axis] = (number(start), number(end))
            result[axis] = (walk.shape(node.outputs[0]) or ())[axis]
    new = sliced(walk, source, parts, tuple(result))
    for axis, (most, rows) in limits.items():
        walk.bound(wants[axis], most, f"the table `{data.name}` has {rows} rows", new)
    return new


RULES: dict[str, PushBack] = {
    "Expand": _expand,
    "Tile": _tile,
    "Concat": _concat,
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "Slice": _slice,
}
