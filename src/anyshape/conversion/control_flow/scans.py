"""Loops made into ONNX Scan, or Loop where what is carried grows; what no step changes stays outside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from anyshape.conversion.control_flow import marks
from anyshape.onnxfile.graph import (
    Dependencies,
    captured,
    constant_node,
    constant_of,
    describe,
    hand_out,
    is_op,
    is_standard,
    new_node,
    prune,
    reads,
    replace,
)

Lengths = frozenset[ir.SymbolicDim]
"""The sizes that the inputs of a model have. An input is not empty, but a part of it may be."""


@dataclass(frozen=True)
class LoopRegion:
    """A loop in a graph: its marks, and the nodes of one step between them."""

    graph: ir.Graph
    begin: ir.Node
    end: ir.Node
    nodes: Sequence[ir.Node]


def lower_loops(graph: ir.Graph, lengths: Lengths) -> list[ir.Graph]:
    """Make every loop in a graph one node; the steps may hold further marks. The last loop is the outermost."""
    steps = []
    while ends := marks.marks_of(graph, marks.LOOP_END):
        region = _region_up_to(graph, ends[-1])
        some_step = is_positive(marks.count_of(region.end), lengths)
        # Scan has to know the rank of what a step gives, which ONNX Runtime forgets of a Loop's results (1.31)
        lower = _to_loop if any(map(_needs_loop, (region.begin, region.end, *region.nodes))) else _to_scan
        steps.append(lower(region, some_step=some_step))
    return steps


def _needs_loop(mark: ir.Node) -> bool:
    """Whether a loop with this mark cannot be a Scan."""
    if marks.is_mark(mark, marks.LOOP_END):
        return marks.goes_on_of(mark) is not None
    return marks.is_mark(mark, marks.LOOP_BEGIN) and bool(marks.growing_of(mark))


def _region_up_to(graph: ir.Graph, end: ir.Node) -> LoopRegion:
    begins = [node for node in marks.marks_of(graph, marks.LOOP_BEGIN) if marks.loop_of(node) == marks.loop_of(end)]
    begin = begins[0] if begins else _unused_begin(graph, end)
    nodes = _nodes_of_a_step(graph, begin, end)
    _refuse_escapes(graph, begin, end, nodes)
    return LoopRegion(graph, begin, end, nodes)


def _nodes_of_a_step(graph: ir.Graph, begin: ir.Node, end: ir.Node) -> list[ir.Node]:
    """What needs the begin and is needed by the end; an inner loop whole, though its begin may need nothing of this."""
    dependencies = Dependencies(graph)
    begins = {marks.loop_of(node): node for node in marks.marks_of(graph, marks.LOOP_BEGIN)}
    inner: list[ir.Node] = [begin]
    while True:
        nodes = dependencies.between(inner, end)
        loops = {marks.loop_of(node) for node in nodes if marks.is_mark(node, marks.LOOP_END)} & set(begins)
        if len(loops) == len(inner) - 1:
            return [node for node in nodes if node is not begin]
        inner = [begin, *(begins[loop] for loop in loops)]


def _unused_begin(graph: ir.Graph, end: ir.Node) -> ir.Node:
    """The begin of a loop whose steps use neither their index nor what is carried: it was removed as dead."""
    initial = marks.initial_of(end)
    pairs = zip(initial, marks.results_of(end)[0], strict=True)
    grown = [place for place, (before, after) in enumerate(pairs) if before.shape != after.shape]
    growing = [number for place in grown for number in (place, 0)]
    attributes = [end.attributes["loop"], end.attributes["carried"], ir.AttrInt64s("growing", growing)]
    inputs = [marks.count_of(end), *initial]
    begin = ir.Node(marks.DOMAIN, marks.LOOP_BEGIN, inputs, attributes, num_outputs=len(inputs))
    for value, like in zip(begin.outputs[1:], initial, strict=True):
        describe(value, like)
    graph.insert_before(end, begin)
    return begin


def _refuse_escapes(graph: ir.Graph, begin: ir.Node, end: ir.Node, nodes: Sequence[ir.Node]) -> None:
    inside = {id(node) for node in (*nodes, end)}
    of_a_step = {id(value) for node in (begin, *nodes) for value in node.outputs}
    users = [value for node in graph if id(node) not in inside for value in reads(node)]
    for value in (*users, *graph.outputs):
        if id(value) in of_a_step:
            raise marks.RegionError(f"a value of a single step of a loop is used after the loop: {value.name}")


def _to_scan(region: LoopRegion, *, some_step: bool) -> ir.Graph:
    begin, end = region.begin, region.end
    scanned, added = _scan_slices(region)
    seen = begin.outputs[1 : 1 + len(marks.initial_of(begin))]
    carried = [_input_of_step(mark) for mark in seen]
    ir.convenience.replace_all_uses_with(seen, carried)
    own = {id(node) for node in (*region.nodes, *added)}
    nodes = [node for node in region.graph if id(node) in own]
    region.graph.remove(nodes)
    body = _step_graph([*carried, *(part.inner for part in scanned)], nodes, _results_of_a_step(end), end)
    inputs = [*marks.initial_of(end), *(part.outer for part in scanned)]
    attributes = {"body": body, "num_scan_inputs": len(scanned)}
    _put_instead(region, _loop_node("Scan", inputs, attributes, end), guard=not some_step)
    return body


def _to_loop(region: LoopRegion, *, some_step: bool) -> ir.Graph:
    begin, end = region.begin, region.end
    index, running = _scalar("index", ir.DataType.INT64), _scalar("running", ir.DataType.BOOL)
    carried = [_input_of_step(mark, grows=True) for mark in begin.outputs[1 : 1 + len(marks.initial_of(begin))]]
    cuts = [new_node("Gather", [sequence, index], {"axis": 0}, like=begin) for sequence in marks.sequences_of(begin)]
    seen = [index, *carried, *(cut.outputs[0] for cut in cuts)]
    ir.convenience.replace_all_uses_with(begin.outputs, seen)
    region.graph.remove(region.nodes)
    goes_on, nodes = marks.goes_on_of(end), [*cuts, *region.nodes]
    if goes_on is not None:
        nodes.append(new_node("Cast", [goes_on], {"to": ir.DataType.BOOL}, like=end))
    results = [running if goes_on is None else nodes[-1].outputs[0], *_results_of_a_step(end)]
    body = _step_graph([index, running, *carried], nodes, results, end)
    # a Loop that carries nothing has to be given it
    begins = new_node("Constant", [], {"value": ir.tensor(np.array(True))}, like=end)
    region.graph.insert_before(end, begins)
    node = _loop_node("Loop", [marks.count_of(end), begins.outputs[0], *marks.initial_of(end)], {"body": body}, end)
    collects = len(end.outputs) > len(marks.initial_of(end))
    _put_instead(region, node, guard=collects and not some_step)
    return body


def _scalar(name: str, dtype: ir.DataType) -> ir.Value:
    return ir.Value(name=name, type=ir.TensorType(dtype), shape=ir.Shape([]))


def _input_of_step(mark: ir.Value, *, grows: bool = False) -> ir.Value:
    """Like a mark's output; torch's symbols mean nothing in the file, and what grows has another size in each step,
    whatever it begins with.
    """
    sizes = [None if grows or not isinstance(size, int) else size for size in mark.shape or ()]
    return ir.Value(name=mark.name, type=mark.type, shape=None if mark.shape is None else ir.Shape(sizes))


def _results_of_a_step(end: ir.Node) -> list[ir.Value]:
    carried, collected = marks.results_of(end)
    return [*carried, *collected]


def _step_graph(
    inputs: Sequence[ir.Value], nodes: Sequence[ir.Node], results: Sequence[ir.Value], end: ir.Node
) -> ir.Graph:
    own = list(nodes)
    outputs = hand_out(own, results, like=end)
    return ir.Graph(inputs, outputs, nodes=own, name="step")


def _loop_node(operator: str, inputs: Sequence[ir.Value | None], attributes: Any, end: ir.Node) -> ir.Node:
    node = new_node(operator, inputs, attributes, like=end, outputs=len(end.outputs))
    for value, like in zip(node.outputs, end.outputs, strict=True):
        describe(value, like)
    return node


def _put_instead(region: LoopRegion, loop: ir.Node, *, guard: bool) -> None:
    """Let a loop, guarded where it may take no step, stand for its marks."""
    graph, end = region.graph, region.end
    node = _guarded_loop(graph, loop, end) if guard else loop
    graph.insert_before(end, node)
    for old, new in zip(end.outputs, node.outputs, strict=True):
        replace(old, describe(new, old), keep_name=True)
    graph.remove(end, safe=True)
    graph.remove(region.begin, safe=True)


# ---- what each step takes from outside: its slices of tensors, recognised by the index they are taken at

_SAME_NUMBER = ("Identity", "Cast", "Reshape", "Squeeze", "Unsqueeze")


@dataclass(frozen=True)
class Scanned:
    """A tensor whose axis 0 is as long as a loop, and the slice of it that a step sees."""

    outer: ir.Value
    inner: ir.Value


@dataclass(frozen=True)
class StepSlice:
    """A node that takes the slice at the loop's index out of a tensor, with its axis gone or of size one."""

    node: ir.Node
    tensor: ir.Value
    axis: int
    keeps_axis: bool


def _scan_slices(region: LoopRegion) -> tuple[list[Scanned], list[ir.Node]]:
    """Everything that is scanned, and further nodes of the step; what gave the slices before is replaced."""
    graph, begin, end = region.graph, region.begin, region.end
    parts, added = _sequences(begin), []
    known: dict[tuple[int, int], Scanned] = {}
    for cut in _step_slices(begin, region.nodes):
        key = (id(cut.tensor), cut.axis)
        if key not in known:
            known[key] = Scanned(_lying_first(graph, end, cut), _slice_of(cut))
        added.extend(_use_slice(graph, cut, known[key].inner))
    parts.extend(known.values())
    prune(graph, region.nodes)
    if begin.outputs[0].uses() or not parts:
        parts.append(_scanned_index(graph, begin, end))
    return parts, added


def _sequences(begin: ir.Node) -> list[Scanned]:
    parts = []
    for outer, mark in zip(marks.sequences_of(begin), begin.outputs[1 + len(marks.initial_of(begin)) :], strict=True):
        inner = _input_of_step(mark)
        mark.replace_all_uses_with(inner)
        parts.append(Scanned(outer, inner))
    return parts


def _step_slices(begin: ir.Node, nodes: Sequence[ir.Node]) -> list[StepSlice]:
    inside = {id(value) for node in (begin, *nodes) for value in node.outputs}
    found = [_step_slice(node, begin.outputs[0]) for node in nodes if is_op(node, "Gather", "Slice")]
    return [cut for cut in found if cut is not None and id(cut.tensor) not in inside]


def _step_slice(node: ir.Node, index: ir.Value) -> StepSlice | None:
    tensor, at = node.inputs[0], node.inputs[1]
    if tensor is None or tensor.shape is None or at is None or at.shape is None or not _is_index(at, index):
        return None
    if node.op_type == "Gather" and len(at.shape) <= 1:
        axis = node.attributes.get_int("axis", 0) % len(tensor.shape)
        return StepSlice(node, tensor, axis, keeps_axis=len(at.shape) == 1)
    sliced = _sliced_axis(node, index) if node.op_type == "Slice" else None
    return None if sliced is None else StepSlice(node, tensor, sliced % len(tensor.shape), keeps_axis=True)


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
    if node is None or not is_standard(node):
        return False
    first_of_one = node.op_type == "Gather" and constant_of(node.inputs[1]) is not None
    return (node.op_type in _SAME_NUMBER or first_of_one) and _is_index(node.inputs[0], index)


def _is_next(value: ir.Value | None, index: ir.Value) -> bool:
    """Whether a value is the index plus one."""
    node = None if value is None else value.producer()
    if node is None or not is_standard(node):
        return False
    if node.op_type in _SAME_NUMBER:
        return _is_next(node.inputs[0], index)
    return node.op_type == "Add" and _is_index(node.inputs[0], index) and constant_of(node.inputs[1]) == 1


def _slice_of(cut: StepSlice) -> ir.Value:
    assert cut.tensor.shape is not None
    sizes = [size if isinstance(size, int) else None for axis, size in enumerate(cut.tensor.shape) if axis != cut.axis]
    return ir.Value(name=f"{cut.tensor.name}_slice", type=cut.tensor.type, shape=ir.Shape(sizes))


def _lying_first(graph: ir.Graph, end: ir.Node, cut: StepSlice) -> ir.Value:
    """The tensor with the axis in front, and as long as the loop.

    Scan could take any axis, and would transpose by itself; but ONNX Runtime ends the process by a division by zero if
    such an axis is empty (1.31). With a plain Transpose it says what is wrong.
    """
    tensor, made = cut.tensor, []
    assert tensor.shape is not None
    if not is_as_long(tensor, cut.axis, marks.count_of(end)):
        axis, zero = constant_node([cut.axis], like=end), constant_node([0], like=end)
        limit = new_node("Reshape", [marks.count_of(end), (one := constant_node([1], like=end)).outputs[0]], like=end)
        inputs = [tensor, zero.outputs[0], limit.outputs[0], axis.outputs[0]]
        made += [axis, zero, one, limit, new_node("Slice", inputs, like=end)]
    if cut.axis:
        order = [cut.axis, *(axis for axis in range(len(tensor.shape)) if axis != cut.axis)]
        made.append(new_node("Transpose", [made[-1].outputs[0] if made else tensor], {"perm": order}, like=end))
    graph.insert_before(end, made)
    return made[-1].outputs[0] if made else tensor


def _use_slice(graph: ir.Graph, cut: StepSlice, inner: ir.Value) -> list[ir.Node]:
    """Let the step use its slice instead of cutting it out; an axis of size one must be added."""
    old = cut.node.outputs[0]
    if not cut.keeps_axis:
        old.replace_all_uses_with(inner)
        return []
    axes = constant_node([cut.axis], like=cut.node)
    node = new_node("Unsqueeze", [inner, axes.outputs[0]], like=cut.node)
    graph.insert_before(cut.node, [axes, node])
    old.replace_all_uses_with(describe(node.outputs[0], old))
    return [node]


def _scanned_index(graph: ir.Graph, begin: ir.Node, end: ir.Node) -> Scanned:
    """All indices, to be scanned along with the rest."""
    zero, one = constant_node(0, like=end), constant_node(1, like=end)
    numbers = new_node("Range", [zero.outputs[0], marks.count_of(end), one.outputs[0]], like=end)
    graph.insert_before(end, [zero, one, numbers])
    inner = _scalar("index", ir.DataType.INT64)
    begin.outputs[0].replace_all_uses_with(inner)
    return Scanned(numbers.outputs[0], inner)


# ---- loops that may take no step at all, such as one over `n - 1`: what they result in, without running them
#
# ONNX Runtime's Scan fails without a step, and its Loop gives a collected tensor sizes of 0 where it knows none (1.31).


def _guarded_loop(graph: ir.Graph, loop: ir.Node, end: ir.Node) -> ir.Node:
    """An If around a loop, for where it takes a step; else what was given is handed on, and nothing was collected."""
    zero = constant_node(0, like=end)
    any_step = new_node("Greater", [marks.count_of(end), zero.outputs[0]], like=end)
    graph.insert_before(end, [zero, any_step])
    visible = [*marks.initial_of(end), *reads(loop), *graph.inputs, *captured(graph)]
    nothing: list[ir.Node] = []
    empty = [_nothing_collected(value, visible, nothing, end) for value in end.outputs[len(marks.initial_of(end)) :]]
    without = hand_out(nothing, [*marks.initial_of(end), *empty], like=end)
    branches = {
        "then_branch": ir.Graph([], loop.outputs, nodes=[loop], name="some_steps"),
        "else_branch": ir.Graph([], without, nodes=nothing, name="no_step"),
    }
    return new_node("If", any_step.outputs, branches, like=end, outputs=len(end.outputs))


def _nothing_collected(
    collected: ir.Value, visible: Sequence[ir.Value], nodes: list[ir.Node], end: ir.Node
) -> ir.Value:
    """A tensor of no steps, with the sizes of a step."""
    assert collected.shape is not None
    assert collected.dtype is not None
    sizes = [constant_node([0], like=end), *(_size_outside(size, visible, end) for size in collected.shape[1:])]
    shape = new_node("Concat", [node.outputs[0] for node in sizes], {"axis": 0}, like=end)
    value = ir.tensor(np.zeros(1, collected.dtype.numpy()), dtype=collected.dtype)
    made = new_node("ConstantOfShape", shape.outputs, {"value": value}, like=end)
    nodes.extend([*sizes, shape, made])
    return describe(made.outputs[0], collected)


def _size_outside(size: int | ir.SymbolicDim, visible: Sequence[ir.Value], end: ir.Node) -> ir.Node:
    """A size of a step's result, from a tensor outside that has it; one that only a step could tell is 0."""
    if isinstance(size, int):
        return constant_node([size], like=end)
    for value in visible:
        places = [] if value.shape is None or size.value is None else list(value.shape)
        if size in places:
            axis = places.index(size)
            return new_node("Shape", [value], {"start": axis, "end": axis + 1}, like=end)
    return constant_node([0], like=end)


# ---- numbers of steps that are visibly the size of some tensor


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
    return _axis_gathered(node) if node.op_type == "Gather" else None


def _axis_gathered(node: ir.Node) -> tuple[ir.Value, int] | None:
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
    # two sizes of one name are one size; without a name nothing is known
    return other.shape is not None and size == other.shape[place] and size != ir.SymbolicDim(None)
