"""Gather, Scatter and their kin: indices that run through a whole axis, or name its end, follow its size."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from anyshape.freeing.constant_patterns import is_uniform
from anyshape.freeing.growth import grow_fixed, grow_input
from anyshape.freeing.rules.reshape import readings
from anyshape.freeing.walk import Rule, Shapes, Walk
from anyshape.onnxfile.graph import attribute
from anyshape.sizes.expressions import ONE, Shape, Size, is_number, number, product, spelled


def gather(walk: Walk, node: ir.Node) -> Shapes:
    data, index = node.inputs[0], walk.constant_at_file(node.inputs[1])
    shape = walk.shape(data)
    if data is None or not shape or index is None or not index.size:
        return None
    axis = int(attribute(node, "axis", 0)) % len(shape)
    size = shape[axis]
    if not walk.is_free(size):
        return None
    n, flat = walk.at_file(size) or 0, index.ravel()
    if walk.varies(node.inputs[1]) or (walk.constant(node.inputs[1]) is None and len(flat) != n):
        return None  # it follows the sizes already
    if index.ndim and np.array_equal(flat, np.arange(n)):
        if n > 1 or walk.chooser.choose((True, False)):
            _run_through(walk, node, axis, index.shape)
    elif index.size == 1 and is_written_out(walk, data, axis, n):
        raise walk.pinned(node, f"the file goes through `{spelled(size)}` step by step, {n} steps in all", size)
    elif index.ndim == 1 and n > 1 and np.array_equal(flat, np.arange(n)[::-1]):
        grow_input(walk, node, 1, {0: size}, broadcasts=False)
    elif index.size == 1 and n > 1 and int(flat[0]) == n - 1 and (n > 2 or walk.chooser.choose((True, False))):
        last = walk.builder.constant(np.full_like(index, -1))
        walk.replace(node, 1, last, f"index {n - 1} became -1, the last along `{spelled(size)}`")
    return None


def is_written_out(walk: Walk, data: ir.Value, axis: int, n: int) -> bool:
    """Whether every single entry along an axis is picked by a node of its own: a loop that was unrolled."""
    picked: set[int] = set()
    for user, place in data.uses():
        if user.op_type == "Gather" and place == 0 and int(attribute(user, "axis", 0)) % len(data.shape or ()) == axis:
            index = walk.constant(user.inputs[1])
            picked |= {int(index.flat[0]) % n} if index is not None and index.size == 1 else set()
    return n > 1 and len(picked) == n


def _run_through(walk: Walk, node: ir.Node, axis: int, shape: tuple[int, ...]) -> None:
    """Indices 0, 1, 2, ... of the whole axis, in whatever shape the file has them."""
    assert node.inputs[0] is not None
    atoms = [(size, walk.at_file(size) or 1) for size in walk.factors.of(node.inputs[0])[axis]]
    reading = walk.chooser.choose(readings(atoms, shape))
    sizes = tuple(product(factors) for factors in reading)
    build, whole = walk.builder, product(sizes)
    index = build.ramp(whole, 0, 1)
    if len(sizes) > 1:
        index = build.node("Reshape", [index, build.vector(sizes)], sizes)
    walk.replace(node, 1, index, f"indices {list(shape)} run through `{spelled(whole)}`")


def gather_nd(walk: Walk, node: ir.Node) -> Shapes:
    if attribute(node, "batch_dims", 0):
        return None
    _follow_grid(walk, node)
    return None


def scatter_nd(walk: Walk, node: ir.Node) -> Shapes:
    """The updates have the shape of the indices, and then that of the rest of the data."""
    data = walk.shape(node.inputs[0])
    _follow_grid(walk, node)
    index, updates = walk.shape(node.inputs[1]), walk.shape(node.inputs[2])
    if data is None or index is None or updates is None or not is_number(index[-1]):
        return None
    wanted = (*index[:-1], *data[int(index[-1]) :])
    grow_fixed(walk, node, 2, dict(enumerate(wanted)), broadcasts=False)
    return [data]


def _follow_grid(walk: Walk, node: ir.Node) -> None:
    """A constant grid of positions: each of its columns that runs through a free axis does so at every size."""
    shape, index = walk.shape(node.inputs[0]), walk.constant(node.inputs[1])
    if shape is None or index is None or not index.size or index.ndim < 2:
        return
    runs = _running_axes(walk, shape, index)
    if not runs:
        return
    grid: list[Size] = [number(n) for n in index.shape[:-1]]
    for column, axis in runs.items():
        grid[axis] = shape[column]
    columns = [_column_of_grid(walk, node, index[..., c], grid, runs.get(c)) for c in range(index.shape[-1])]
    build, row = walk.builder, tuple(grid)
    full = [build.node("Expand", [column, build.vector(row)], row) for column in columns]
    goal = [number(n) if is_number(n) else number(0) for n in row]
    tall = [build.node("Reshape", [c, build.vector([*goal, ONE])], (*row, ONE)) for c in full]
    joined = build.node("Concat", tall, (*row, number(len(tall))), axis=index.ndim - 1)
    walk.replace(node, 1, joined, f"the grid of indices {list(index.shape)} became [{', '.join(map(spelled, row))}]")


def _running_axes(walk: Walk, shape: Shape, index: Any) -> dict[int, int]:
    """Column of the indices -> the axis of the grid along which it counts through a free axis of the data."""
    found: dict[int, int] = {}
    for column in range(min(index.shape[-1], len(shape))):
        if not walk.is_free(shape[column]):
            continue
        n, values = walk.at_file(shape[column]), index[..., column]
        axes = [
            axis
            for axis in range(values.ndim)
            if values.shape[axis] == n and axis not in found.values() and _counts_up(values, axis)
        ]
        if axes:
            found[column] = walk.chooser.choose(axes)
    return found


def _counts_up(values: Any, axis: int) -> bool:
    line = np.arange(values.shape[axis]).reshape([-1 if a == axis else 1 for a in range(values.ndim)])
    return bool(np.array_equal(values, np.broadcast_to(line, values.shape)))


def _column_of_grid(walk: Walk, node: ir.Node, values: Any, grid: list[Size], runs: int | None) -> ir.Value:
    if runs is not None:
        return walk.builder.ramp(grid[runs], runs, values.ndim)
    for axis, size in enumerate(grid):
        if not is_number(size):
            if not is_uniform(values, axis):
                raise walk.pinned(node, f"its indices change along `{spelled(size)}` in a way that is no formula", size)
            values = np.take(values, [0], axis)
    return walk.builder.constant(values)


def elements(walk: Walk, node: ir.Node) -> Shapes:
    """GatherElements and ScatterElements: indices have the data's shape, but for their own axis."""
    data, index = walk.shape(node.inputs[0]), walk.shape(node.inputs[1])
    if data is None or index is None:
        return None
    own = int(attribute(node, "axis", 0)) % len(data)
    others = {axis: size for axis, size in enumerate(index) if axis != own}
    grow_fixed(walk, node, 0, others, broadcasts=False)
    data = walk.shape(node.inputs[0]) or ()
    constant = walk.constant(node.inputs[1])
    whole = constant is not None and constant.shape[own] == walk.at_file(data[own])
    pairs = enumerate(zip(data, index, strict=True))
    same = {axis: size for axis, (size, own_size) in pairs if walk.at_file(size) == walk.at_file(own_size)}
    wants = {axis: size for axis, size in same.items() if axis != own or whole}
    grow_fixed(walk, node, 1, wants, broadcasts=False)
    grow_fixed(walk, node, 2, dict(enumerate(walk.shape(node.inputs[1]) or ())), broadcasts=False)
    return None


def topk(walk: Walk, node: ir.Node) -> Shapes:
    """A sort asks for as many as there are."""
    shape, count = walk.shape(node.inputs[0]), walk.constant(node.inputs[1])
    if not shape or count is None:
        return None
    axis = int(attribute(node, "axis", -1)) % len(shape)
    if not walk.is_free(shape[axis]) or int(count.flat[0]) != walk.at_file(shape[axis]):
        return None
    walk.replace(node, 1, walk.builder.size(shape[axis]), f"k became `{spelled(shape[axis])}`")
    return [shape, shape]


RULES: dict[str, Rule] = {
    "Gather": gather,
    "GatherND": gather_nd,
    "ScatterND": scatter_nd,
    "GatherElements": elements,
    "ScatterElements": elements,
    "TopK": topk,
}
