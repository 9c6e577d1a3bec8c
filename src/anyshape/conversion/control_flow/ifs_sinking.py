"""Both sides of a branch made as small as they can be: what they have in common before it and after it, done once.

Each side was traced from the start, so it repeats what comes before the branch, and goes on after it.
"""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
from onnx_ir.passes.common import CommonSubexpressionEliminationPass

from anyshape.conversion.control_flow.marks_marks import (
    CHOOSE,
    LOOP_BEGIN,
    LOOP_END,
    group_of,
    is_mark,
    loop_of,
    marks_of,
    sides,
)
from anyshape.onnxfile.graph_graphs import constant_of, describe, graphs_in, prune, replace


def share(model: ir.Model) -> None:
    """Compute once what is computed twice, also whole loops, and choose as early as possible."""
    prune(model.graph, model.graph)
    CommonSubexpressionEliminationPass()(model)
    _merge_loops(model.graph)
    CommonSubexpressionEliminationPass()(model)
    _sink_choices(model.graph)
    CommonSubexpressionEliminationPass()(model)


def _merge_loops(graph: ir.Graph) -> None:
    """A loop before a branch was traced once for each side, under another number.

    Two values get the same number if they are computed alike. A loop's begin is numbered by how deep it stands, not by
    its own mark, so the steps of two like loops are numbered alike, and their ends tell whether they are the same.
    """
    numbers: dict[int, Any] = {}
    known: dict[Any, ir.Node] = {}
    open_loops: set[int] = set()
    for node in list(graph):
        twin = known.setdefault(_key(node, numbers, len(open_loops)), node)
        numbers.update({id(value): (id(twin), place) for place, value in enumerate(node.outputs)})
        if is_mark(node, LOOP_BEGIN):
            open_loops.add(loop_of(node))
        if is_mark(node, LOOP_END):
            open_loops.discard(loop_of(node))
        if twin is not node and is_mark(node, LOOP_END):
            for old, new in zip(node.outputs, twin.outputs, strict=True):
                _use_instead(graph, old, new)
    prune(graph, graph)


def _key(node: ir.Node, numbers: dict[int, Any], depth: int) -> Any:
    if graphs_in(node):
        return id(node)
    inputs = tuple(None if value is None else numbers.get(id(value), id(value)) for value in node.inputs)
    attributes = tuple(item for item in _attributes(node) if not (is_mark(node) and item[0] in ("group", "loop")))
    return node.op_identifier(), inputs, attributes, depth if is_mark(node, LOOP_BEGIN) else None


def _use_instead(graph: ir.Graph, old: ir.Value, new: ir.Value) -> None:
    """Two outputs of a graph must not be one value."""
    if old.is_graph_output():
        node = ir.node("Identity", [new])
        producer = old.producer()
        assert producer is not None
        graph.insert_after(producer, node)
        new = describe(node.outputs[0], old)
    replace(old, new)


def _sink_choices(graph: ir.Graph) -> None:
    """`choose(f(a, w), f(b, w))` is `f(choose(a, b), w)`."""
    waiting = marks_of(graph, CHOOSE)
    while waiting:
        choice = waiting.pop()
        _, (first,), (second,) = sides(choice)
        if first is second:
            _use_instead(graph, choice.outputs[0], first)
            graph.remove(choice, safe=True)
            continue
        place = _only_difference(first.producer(), second.producer())
        if place is not None and _is_used_once(first) and _is_used_once(second):
            waiting.append(_sunk(graph, choice, place))
    graph.sort()


def _only_difference(first: ir.Node | None, second: ir.Node | None) -> int | None:
    """The one input in which two nodes differ that are alike in all else."""
    if first is None or second is None or not _are_alike(first, second):
        return None
    pairs = list(zip(first.inputs, second.inputs, strict=True))
    places = [place for place, (left, right) in enumerate(pairs) if left is not right]
    if len(places) != 1 or not _can_be_chosen(*pairs[places[0]]):
        return None
    return places[0]


def _are_alike(first: ir.Node, second: ir.Node) -> bool:
    same = first.op_identifier() == second.op_identifier() and len(first.inputs) == len(second.inputs)
    plain = len(first.outputs) == len(second.outputs) == 1 and not is_mark(first) and not graphs_in(first)
    return same and plain and _attributes(first) == _attributes(second)


def _attributes(node: ir.Node) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted((name, _plain(attribute)) for name, attribute in node.attributes.items()))


def _plain(attribute: ir.Attr) -> Any:
    """An attribute as something that can be compared."""
    if attribute.type == ir.AttributeType.TENSOR:
        tensor = attribute.as_tensor()
        return str(tensor.dtype), str(tensor.shape), tensor.tobytes()
    return str(attribute.value)


def _can_be_chosen(first: ir.Value | None, second: ir.Value | None) -> bool:
    """Of one type and rank; a constant stays one, since runtimes prepare for it (weights, axes)."""
    if first is None or second is None or constant_of(first) is not None or constant_of(second) is not None:
        return False
    if first.dtype is None or first.shape is None or second.shape is None:
        return False
    return first.dtype == second.dtype and len(first.shape) == len(second.shape)


def _is_used_once(value: ir.Value) -> bool:
    return len(value.uses()) == 1 and not value.is_graph_output()


def _sunk(graph: ir.Graph, choice: ir.Node, place: int) -> ir.Node:
    which, (first,), (second,) = sides(choice)
    kept, other = first.producer(), second.producer()
    assert kept is not None
    assert other is not None
    before = (kept.inputs[place], other.inputs[place])
    earlier = ir.Node(
        choice.domain, CHOOSE, [which, *before], [ir.AttrInt64("group", group_of(choice))],
        metadata_props=dict(choice.metadata_props),
    )  # fmt: skip
    assert before[0] is not None
    assert before[1] is not None
    describe(earlier.outputs[0], before[0]).shape = _common_shape(before[0], before[1])
    graph.insert_before(choice, earlier)
    describe(first, choice.outputs[0])
    replace(choice.outputs[0], first)
    graph.remove([choice, other], safe=True)
    kept.replace_input_with(place, earlier.outputs[0])
    graph.remove(kept)
    graph.insert_after(earlier, kept)
    return earlier


def _common_shape(first: ir.Value, second: ir.Value) -> ir.Shape:
    assert first.shape is not None
    assert second.shape is not None
    return ir.Shape([left if left == right else None for left, right in zip(first.shape, second.shape, strict=True)])
