"""Loops made into ONNX Scan, or Loop where what is carried grows; what no step changes stays outside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from anyshape.conversion.control_flow.marks_marks import (
    DOMAIN,
    LOOP_BEGIN,
    LOOP_END,
    RegionError,
    count_of,
    growing_of,
    initial_of,
    is_mark,
    loop_of,
    marks_of,
    results_of,
    sequences_of,
)
from anyshape.conversion.control_flow.scans import Lengths, is_positive
from anyshape.conversion.control_flow.scans_slices import scan_slices, without_symbols
from anyshape.conversion.control_flow.scans_zero_steps import guarded
from anyshape.onnxfile.graph_graphs import Dependencies, describe, hand_out, new_node, reads, replace


@dataclass(frozen=True)
class Region:
    """A loop in a graph: its marks, and the nodes of one step between them."""

    graph: ir.Graph
    begin: ir.Node
    end: ir.Node
    nodes: Sequence[ir.Node]


def lower_loops(graph: ir.Graph, lengths: Lengths) -> list[ir.Graph]:
    """Make every loop in a graph one node; the steps may hold further marks. The last loop is the outermost."""
    steps = []
    while ends := marks_of(graph, LOOP_END):
        region = _region(graph, ends[-1])
        some_step = is_positive(count_of(region.end), lengths)
        lower = _to_loop if growing_of(region.begin) else _to_scan
        steps.append(lower(region, some_step=some_step))
    return steps


def _region(graph: ir.Graph, end: ir.Node) -> Region:
    begins = [node for node in marks_of(graph, LOOP_BEGIN) if loop_of(node) == loop_of(end)]
    begin = begins[0] if begins else _unused_begin(graph, end)
    nodes = _nodes_of_a_step(graph, begin, end)
    _refuse_escapes(graph, begin, end, nodes)
    return Region(graph, begin, end, nodes)


def _nodes_of_a_step(graph: ir.Graph, begin: ir.Node, end: ir.Node) -> list[ir.Node]:
    """What needs the begin and is needed by the end; an inner loop whole, though its begin may need nothing of this."""
    dependencies, begins = Dependencies(graph), {loop_of(node): node for node in marks_of(graph, LOOP_BEGIN)}
    inner: list[ir.Node] = [begin]
    while True:
        nodes = dependencies.between(inner, end)
        loops = {loop_of(node) for node in nodes if is_mark(node, LOOP_END)} & set(begins)
        if len(loops) == len(inner) - 1:
            return [node for node in nodes if node is not begin]
        inner = [begin, *(begins[loop] for loop in loops)]


def _unused_begin(graph: ir.Graph, end: ir.Node) -> ir.Node:
    """The begin of a loop whose steps use neither their index nor what is carried: it was removed as dead."""
    initial = initial_of(end)
    growing = [
        number
        for place, (before, after) in enumerate(zip(initial, results_of(end)[0], strict=True))
        if before.shape != after.shape
        for number in (place, 0)
    ]
    attributes = [end.attributes["loop"], end.attributes["carried"], ir.AttrInt64s("growing", growing)]
    begin = ir.Node(DOMAIN, LOOP_BEGIN, [count_of(end), *initial], attributes, num_outputs=1 + len(initial))
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
            raise RegionError(f"a value of a single step of a loop is used after the loop: {value.name}")


def _to_scan(region: Region, *, some_step: bool) -> ir.Graph:
    begin, end = region.begin, region.end
    scanned, added = scan_slices(region.graph, begin, end, region.nodes)
    marks = begin.outputs[1 : 1 + len(initial_of(begin))]
    carried = [without_symbols(mark) for mark in marks]
    ir.convenience.replace_all_uses_with(marks, carried)
    own = {id(node) for node in (*region.nodes, *added)}
    nodes = [node for node in region.graph if id(node) in own]
    region.graph.remove(nodes)
    body = _body([*carried, *(part.inner for part in scanned)], nodes, _results(end), end)
    inputs = [*initial_of(end), *(part.outer for part in scanned)]
    attributes = [ir.AttrGraph("body", body), ir.AttrInt64("num_scan_inputs", len(scanned))]
    _put(region, _made("Scan", inputs, attributes, end), guard=not some_step)
    return body


def _to_loop(region: Region, *, some_step: bool) -> ir.Graph:
    begin, end = region.begin, region.end
    index, running = _scalar("index", ir.DataType.INT64), _scalar("running", ir.DataType.BOOL)
    carried = [_of_any_size(mark) for mark in begin.outputs[1 : 1 + len(initial_of(begin))]]
    cuts = [new_node("Gather", [sequence, index], {"axis": 0}, like=begin) for sequence in sequences_of(begin)]
    seen = [index, *carried, *(cut.outputs[0] for cut in cuts)]
    ir.convenience.replace_all_uses_with(begin.outputs, seen)
    region.graph.remove(region.nodes)
    body = _body([index, running, *carried], [*cuts, *region.nodes], [running, *_results(end)], end)
    node = _made("Loop", [count_of(end), None, *initial_of(end)], [ir.AttrGraph("body", body)], end)
    collects = len(end.outputs) > len(initial_of(end))
    _put(region, node, guard=collects and not some_step)
    return body


def _scalar(name: str, dtype: ir.DataType) -> ir.Value:
    return ir.Value(name=name, type=ir.TensorType(dtype), shape=ir.Shape([]))


def _of_any_size(mark: ir.Value) -> ir.Value:
    """What grows has another size in each step, whatever it begins with."""
    shape = None if mark.shape is None else ir.Shape([None] * len(mark.shape))
    return ir.Value(name=mark.name, type=mark.type, shape=shape)


def _results(end: ir.Node) -> list[ir.Value]:
    carried, collected = results_of(end)
    return [*carried, *collected]


def _body(inputs: Sequence[ir.Value], nodes: Sequence[ir.Node], results: Sequence[ir.Value], end: ir.Node) -> ir.Graph:
    own = list(nodes)
    outputs = hand_out(own, results, like=end)
    return ir.Graph(inputs, outputs, nodes=own, name="step")


def _made(operator: str, inputs: Sequence[ir.Value | None], attributes: Sequence[ir.Attr], end: ir.Node) -> ir.Node:
    node = ir.Node(
        "", operator, inputs, attributes, num_outputs=len(end.outputs), metadata_props=dict(end.metadata_props)
    )
    for value, like in zip(node.outputs, end.outputs, strict=True):
        describe(value, like)
    return node


def _put(region: Region, loop: ir.Node, *, guard: bool) -> None:
    """Let a loop, guarded where it may take no step, stand for its marks."""
    graph, end = region.graph, region.end
    node = guarded(graph, loop, end) if guard else loop
    graph.insert_before(end, node)
    for old, new in zip(end.outputs, node.outputs, strict=True):
        replace(old, describe(new, old))
    graph.remove(end, safe=True)
    graph.remove(region.begin, safe=True)
