"""Loops that may take no step at all, such as one over `n - 1`: what they result in, without running them.

ONNX Runtime's Scan fails without a step, and its Loop gives a collected tensor sizes of 0 where it knows none (1.31).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from anyshape.conversion.control_flow.marks_marks import count_of, initial_of
from anyshape.onnxfile.graph_graphs import captured, constant, describe, hand_out, new_node, reads


def guarded(graph: ir.Graph, loop: ir.Node, end: ir.Node) -> ir.Node:
    """An If around a loop, for where it takes a step; else what was given is handed on, and nothing was collected."""
    zero = constant(0, like=end)
    any_step = new_node("Greater", [count_of(end), zero.outputs[0]], like=end)
    graph.insert_before(end, [zero, any_step])
    visible = [*initial_of(end), *reads(loop), *graph.inputs, *captured(graph)]
    nothing: list[ir.Node] = []
    empty = [_empty(value, visible, nothing, end) for value in end.outputs[len(initial_of(end)) :]]
    without = hand_out(nothing, [*initial_of(end), *empty], like=end)
    branches = [
        ir.AttrGraph("then_branch", ir.Graph([], loop.outputs, nodes=[loop], name="some_steps")),
        ir.AttrGraph("else_branch", ir.Graph([], without, nodes=nothing, name="no_step")),
    ]
    return ir.Node(
        "", "If", any_step.outputs, branches,
        num_outputs=len(end.outputs), metadata_props=dict(end.metadata_props),
    )  # fmt: skip


def _empty(collected: ir.Value, visible: Sequence[ir.Value], nodes: list[ir.Node], end: ir.Node) -> ir.Value:
    """A tensor of no steps, with the sizes of a step."""
    assert collected.shape is not None
    assert collected.dtype is not None
    sizes = [constant([0], like=end), *(_size(size, visible, end) for size in collected.shape[1:])]
    shape = new_node("Concat", [node.outputs[0] for node in sizes], {"axis": 0}, like=end)
    value = ir.tensor(np.zeros(1, collected.dtype.numpy()), dtype=collected.dtype)
    made = new_node("ConstantOfShape", shape.outputs, {"value": value}, like=end)
    nodes.extend([*sizes, shape, made])
    return describe(made.outputs[0], collected)


def _size(size: int | ir.SymbolicDim, visible: Sequence[ir.Value], end: ir.Node) -> ir.Node:
    """A size of a step's result, from a tensor outside that has it; one that only a step could tell is 0."""
    if isinstance(size, int):
        return constant([size], like=end)
    for value in visible:
        places = [] if value.shape is None or size.value is None else list(value.shape)
        if size in places:
            axis = places.index(size)
            return new_node("Shape", [value], {"start": axis, "end": axis + 1}, like=end)
    return constant([0], like=end)
