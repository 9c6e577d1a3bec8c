"""Expand, Tile, ConstantOfShape, Range and Resize: tensors of a size that is written down.

That of a Resize is the size of another tensor, or a multiple of its own.
"""

from __future__ import annotations

import onnx_ir as ir

from anyshape.freeing.growth import grow_fixed
from anyshape.freeing.walk import Rule, Shapes, Walk
from anyshape.onnxfile.graph import attribute
from anyshape.sizes.expressions import ONE, Shape, Size, is_number, number, spelled


def expand(walk: Walk, node: ir.Node) -> Shapes:
    """Where the data is free already, the target says 1, which keeps its size."""
    shape, target = walk.shape(node.inputs[0]), walk.numbers(node.inputs[1])
    if shape is None or target is None:
        return None
    shared = range(-min(len(shape), len(target)), 0)
    grow_fixed(walk, node, 0, {axis + len(shape): target[axis] for axis in shared}, broadcasts=True)
    shape = walk.shape(node.inputs[0]) or ()
    new = list(target)
    for axis in shared:
        if walk.is_free(shape[axis]) and is_number(target[axis]):
            if walk.at_file(shape[axis]) not in (int(target[axis]), 1) and target[axis] != 1:
                why = f"`{spelled(shape[axis])}` becomes {target[axis]}"
                raise walk.pinned(node, why, shape[axis])
            keeps = walk.at_file(shape[axis]) == int(target[axis])
            new[axis] = ONE if keeps else target[axis]
    new = _follow_namesakes(walk, node, shape, new)
    if tuple(new) != target:
        before, after = (", ".join(map(spelled, sizes)) for sizes in (target, new))
        walk.replace(node, 1, walk.builder.vector(new), f"target [{before}] became [{after}]")
    return [_shape_of_result(shape, new)]


def _follow_namesakes(walk: Walk, node: ir.Node, shape: Shape, target: list[Size]) -> list[Size]:
    """Data that varies, repeated as often as a dim was in the file: the dim itself, or that number."""
    if not walk.varies(node.inputs[0]):
        return target  # a constant follows as soon as somebody needs it
    result = list(target)
    for axis in range(-len(target), 0):
        there = shape[axis] if len(shape) >= -axis else ONE
        size = walk.dims.namesake(int(target[axis])) if there == 1 and is_number(target[axis]) else None
        if size is not None and walk.chooser.choose((True, False)):
            result[axis] = size
    return result


def _shape_of_result(shape: Shape, target: list[Size]) -> Shape:
    rank = max(len(shape), len(target))
    data = (ONE,) * (rank - len(shape)) + tuple(shape)
    goal = (ONE,) * (rank - len(target)) + tuple(target)
    return tuple(size if wish == 1 else wish for size, wish in zip(data, goal, strict=True))


def tile(walk: Walk, node: ir.Node) -> Shapes:
    """As Expand: what varies, repeated as often as a dim was, follows that dim."""
    shape, repeats = walk.shape(node.inputs[0]), walk.numbers(node.inputs[1])
    if shape is None or repeats is None or len(shape) != len(repeats):
        return None
    new = _follow_namesakes(walk, node, shape, list(repeats))
    if tuple(new) != repeats:
        walk.replace(node, 1, walk.builder.vector(new), f"repeats became [{', '.join(map(spelled, new))}]")
    return [tuple(size * times for size, times in zip(shape, new, strict=True))]


def constant_of_shape(walk: Walk, node: ir.Node) -> Shapes:
    """A computed shape; a constant one follows as soon as somebody needs it."""
    numbers = walk.numbers(node.inputs[0])
    return None if numbers is None else [numbers]


def counted(walk: Walk, node: ir.Node) -> Shapes:
    """A Range of constants is as long as they say; one of sizes is left to the inference."""
    array = walk.constant(node.outputs[0])
    return None if array is None else [tuple(number(n) for n in array.shape)]


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


RULES: dict[str, Rule] = {
    "Expand": expand,
    "Tile": tile,
    "ConstantOfShape": constant_of_shape,
    "Range": counted,
    "Resize": resize,
}
