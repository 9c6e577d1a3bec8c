"""What each step of a loop takes from outside: its slices of tensors, recognised by the index they are taken at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from anyshape.conversion.control_flow.marks_marks import count_of, initial_of, sequences_of
from anyshape.conversion.control_flow.scans import is_as_long
from anyshape.onnxfile.graph_graphs import constant, constant_of, describe, new_node, prune

_SAME_NUMBER = ("Identity", "Cast", "Reshape", "Squeeze", "Unsqueeze")


@dataclass(frozen=True)
class Scanned:
    """A tensor whose axis 0 is as long as a loop, and the slice of it that a step sees."""

    outer: ir.Value
    inner: ir.Value


@dataclass(frozen=True)
class Cut:
    """A node that takes the slice at the loop's index out of a tensor, with its axis gone or of size one."""

    node: ir.Node
    tensor: ir.Value
    axis: int
    keeps_axis: bool


def scan_slices(
    graph: ir.Graph, begin: ir.Node, end: ir.Node, nodes: Sequence[ir.Node]
) -> tuple[list[Scanned], list[ir.Node]]:
    """Everything that is scanned, and further nodes of the step; what gave the slices before is replaced."""
    parts, added = _sequences(begin), []
    known: dict[tuple[int, int], Scanned] = {}
    for cut in _cuts(begin, nodes):
        key = (id(cut.tensor), cut.axis)
        if key not in known:
            known[key] = Scanned(_lying_first(graph, end, cut), _slice_of(cut))
        added.extend(_use(graph, cut, known[key].inner))
    parts.extend(known.values())
    prune(graph, nodes)
    if begin.outputs[0].uses() or not parts:
        parts.append(_index(graph, begin, end))
    return parts, added


def _sequences(begin: ir.Node) -> list[Scanned]:
    parts = []
    for outer, mark in zip(sequences_of(begin), begin.outputs[1 + len(initial_of(begin)) :], strict=True):
        inner = without_symbols(mark)
        mark.replace_all_uses_with(inner)
        parts.append(Scanned(outer, inner))
    return parts


def without_symbols(mark: ir.Value) -> ir.Value:
    """An input of a step like a mark's output; torch's symbols mean nothing in the file."""
    sizes = None if mark.shape is None else [size if isinstance(size, int) else None for size in mark.shape]
    return ir.Value(name=mark.name, type=mark.type, shape=None if sizes is None else ir.Shape(sizes))


def _cuts(begin: ir.Node, nodes: Sequence[ir.Node]) -> list[Cut]:
    inside = {id(value) for node in (begin, *nodes) for value in node.outputs}
    found = [
        _cut(node, begin.outputs[0]) for node in nodes if node.domain == "" and node.op_type in ("Gather", "Slice")
    ]
    return [cut for cut in found if cut is not None and id(cut.tensor) not in inside]


def _cut(node: ir.Node, index: ir.Value) -> Cut | None:
    tensor, at = node.inputs[0], node.inputs[1]
    if tensor is None or tensor.shape is None or at is None or at.shape is None or not _is_index(at, index):
        return None
    if node.op_type == "Gather" and len(at.shape) <= 1:
        return Cut(node, tensor, node.attributes.get_int("axis", 0) % len(tensor.shape), keeps_axis=len(at.shape) == 1)
    axis = _sliced_axis(node, index) if node.op_type == "Slice" else None
    return None if axis is None else Cut(node, tensor, axis % len(tensor.shape), keeps_axis=True)


def _sliced_axis(node: ir.Node, index: ir.Value) -> int | None:
    """The axis of `x[:, t:t+1]`."""
    end, axes, steps = ([*node.inputs, None, None, None])[2:5]
    along, step = constant_of(axes), constant_of(steps)
    if end is None or along is None or along.size != 1 or (steps is not None and (step is None or step.item() != 1)):
        return None
    return int(along.item()) if _is_next(end, index) else None


def _is_index(value: ir.Value | None, index: ir.Value) -> bool:
    """Whether a value is the index in one of the forms that torch's translation gives to a number."""
    if value is None or value is index:
        return value is index
    node = value.producer()
    if node is None or node.domain != "":
        return False
    first_of_one = node.op_type == "Gather" and constant_of(node.inputs[1]) is not None
    return (node.op_type in _SAME_NUMBER or first_of_one) and _is_index(node.inputs[0], index)


def _is_next(value: ir.Value | None, index: ir.Value) -> bool:
    """Whether a value is the index plus one."""
    node = None if value is None else value.producer()
    if node is None or node.domain != "":
        return False
    if node.op_type in _SAME_NUMBER:
        return _is_next(node.inputs[0], index)
    return node.op_type == "Add" and _is_index(node.inputs[0], index) and constant_of(node.inputs[1]) == 1


def _slice_of(cut: Cut) -> ir.Value:
    assert cut.tensor.shape is not None
    sizes = [size if isinstance(size, int) else None for axis, size in enumerate(cut.tensor.shape) if axis != cut.axis]
    return ir.Value(name=f"{cut.tensor.name}_slice", type=cut.tensor.type, shape=ir.Shape(sizes))


def _lying_first(graph: ir.Graph, end: ir.Node, cut: Cut) -> ir.Value:
    """The tensor with the axis in front, and as long as the loop.

    Scan could take any axis, and would transpose by itself; but ONNX Runtime ends the process by a division by zero if
    such an axis is empty (1.31). With a plain Transpose it says what is wrong.
    """
    tensor, made = cut.tensor, []
    assert tensor.shape is not None
    if not is_as_long(tensor, cut.axis, count_of(end)):
        axis, zero = constant([cut.axis], like=end), constant([0], like=end)
        limit = new_node("Reshape", [count_of(end), (one := constant([1], like=end)).outputs[0]], like=end)
        inputs = [tensor, zero.outputs[0], limit.outputs[0], axis.outputs[0]]
        made += [axis, zero, one, limit, new_node("Slice", inputs, like=end)]
    if cut.axis:
        order = [cut.axis, *(axis for axis in range(len(tensor.shape)) if axis != cut.axis)]
        made.append(new_node("Transpose", [made[-1].outputs[0] if made else tensor], {"perm": order}, like=end))
    graph.insert_before(end, made)
    return made[-1].outputs[0] if made else tensor


def _use(graph: ir.Graph, cut: Cut, inner: ir.Value) -> list[ir.Node]:
    """Let the step use its slice instead of cutting it out; an axis of size one must be added."""
    old = cut.node.outputs[0]
    if not cut.keeps_axis:
        old.replace_all_uses_with(inner)
        return []
    axes = constant([cut.axis], like=cut.node)
    node = new_node("Unsqueeze", [inner, axes.outputs[0]], like=cut.node)
    graph.insert_before(cut.node, [axes, node])
    old.replace_all_uses_with(describe(node.outputs[0], old))
    return [node]


def _index(graph: ir.Graph, begin: ir.Node, end: ir.Node) -> Scanned:
    """All indices, to be scanned along with the rest."""
    zero, one = constant(0, like=end), constant(1, like=end)
    numbers = new_node("Range", [zero.outputs[0], count_of(end), one.outputs[0]], like=end)
    graph.insert_before(end, [zero, one, numbers])
    inner = ir.Value(name="index", type=ir.TensorType(ir.DataType.INT64), shape=ir.Shape([]))
    begin.outputs[0].replace_all_uses_with(inner)
    return Scanned(numbers.outputs[0], inner)
