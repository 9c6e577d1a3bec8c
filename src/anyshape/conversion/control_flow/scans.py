"""Numbers of steps that are visibly the size of some tensor."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from anyshape.onnxfile.graph_graphs import constant_of

Lengths = frozenset[ir.SymbolicDim]
"""The sizes that the inputs of a model have. An input is not empty, but a part of it may be."""


def lengths_of(inputs: Sequence[ir.Value]) -> Lengths:
    shapes = [value.shape for value in inputs if value.shape is not None]
    return frozenset(size for shape in shapes for size in shape if isinstance(size, ir.SymbolicDim) and size.value)


def is_positive(count: ir.Value, lengths: Lengths) -> bool:
    """Whether a number is visibly at least one: a literal, or the size of an input's axis."""
    number, measured = constant_of(count), axis_of(count)
    if number is not None:
        return int(number.item()) >= 1
    if measured is None:
        return False
    tensor, axis = measured
    return tensor.shape is not None and tensor.shape[axis] in lengths


def axis_of(count: ir.Value) -> tuple[ir.Value, int] | None:
    """The tensor and axis whose size a number is."""
    node = count.producer()
    if node is None or not node.inputs or node.inputs[0] is None:
        return None
    if node.op_type == "Shape":
        tensor, start = node.inputs[0], node.attributes.get_int("start", 0)
        end = node.attributes.get_int("end", None)
        single = tensor.shape is not None and end == start + 1 and start >= 0
        return (tensor, start) if single else None
    if node.op_type in ("Squeeze", "Reshape", "Identity"):
        return axis_of(node.inputs[0])
    return _gathered(node) if node.op_type == "Gather" else None


def _gathered(node: ir.Node) -> tuple[ir.Value, int] | None:
    """One number out of a whole shape."""
    place, whole = constant_of(node.inputs[1]), node.inputs[0]
    shape = None if whole is None else whole.producer()
    if place is None or place.size != 1 or place.item() < 0 or shape is None or shape.op_type != "Shape":
        return None
    tensor = shape.inputs[0]
    return None if tensor is None else (tensor, shape.attributes.get_int("start", 0) + int(place.item()))


def is_as_long(tensor: ir.Value, axis: int, count: ir.Value) -> bool:
    """Whether an axis is visibly `count` long."""
    if tensor.shape is None:
        return False
    size, number, measured = tensor.shape[axis], constant_of(count), axis_of(count)
    if number is not None:
        return bool(size == number.item())
    if measured is None:
        return False
    other, place = measured
    if other is tensor and place == axis:
        return True
    return other.shape is not None and _are_same(size, other.shape[place])


def _are_same(left: int | ir.SymbolicDim, right: int | ir.SymbolicDim) -> bool:
    """Two sizes of one name are one size; without a name nothing is known."""
    return left == right and left != ir.SymbolicDim(None)
