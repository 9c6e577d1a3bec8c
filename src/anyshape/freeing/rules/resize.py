"""Resize to sizes that are written down: those of another tensor, or a multiple of its own."""

from __future__ import annotations

import onnx_ir as ir

from anyshape.freeing.walk import Rule, Shapes, Walk
from anyshape.onnxfile.graph import attribute
from anyshape.sizes.expressions import Size, is_number, number, spelled


def resize(walk: Walk, node: ir.Node) -> Shapes:
    shape = walk.shape(node.inputs[0])
    target = walk.numbers(node.inputs[3]) if len(node.inputs) > 3 else None
    if shape is None or not target or not any(walk.is_free(size) for size in shape):
        return None
    named = attribute(node, "axes")
    axes = [int(axis) % len(shape) for axis in named] if named is not None else list(range(len(shape)))
    goal: list[Size] = []
    for axis, n in zip(axes, target, strict=True):
        pinned = walk.is_free(shape[axis]) and is_number(n)
        goal.append(walk.chooser.choose(_sizes_meant(walk, shape[axis], int(n), axis)) if pinned else n)
    sizes = list(shape)
    for axis, size in zip(axes, goal, strict=True):
        sizes[axis] = size
    if tuple(goal) != target:
        before, after = (", ".join(map(spelled, sizes)) for sizes in (target, goal))
        walk.replace(node, 3, walk.builder.vector(goal), f"sizes [{before}] became [{after}]")
    return [tuple(sizes)]


def _sizes_meant(walk: Walk, size: Size, n: int, axis: int) -> list[Size]:
    """The same size, that of a tensor met before, a multiple or a part of its own, the number itself."""
    own = walk.at_file(size) or 1
    if own == n:
        return [size]
    found = list(walk.like(n, axis))[:3]
    if n % own == 0:
        found.append(size * (n // own))
    elif own % n == 0:
        found.append(size / (own // n))
    return list(dict.fromkeys([*found, number(n)]))


RULES: dict[str, Rule] = {"Resize": resize}
