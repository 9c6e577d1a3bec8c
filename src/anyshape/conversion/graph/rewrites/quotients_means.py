"""A mean over several axes is taken at once, and not axis by axis."""

from __future__ import annotations

import onnx_ir as ir

from anyshape.conversion.graph.known_sizes import Sizes
from anyshape.onnxfile.graph import constant, first_input, insert, maker, nodes_of, replace, whole_numbers


def join(graph: ir.Graph, sizes: Sizes) -> None:
    """ReduceMean(ReduceMean(x, a), b) that keep their axes become ReduceMean(x, [a, b])."""
    for node in nodes_of(graph, "ReduceMean"):
        inner = maker(node.inputs[0], "ReduceMean")
        if inner is None or len(inner.outputs[0].uses()) > 1:
            continue
        axes = [*(_axes(inner) or ()), *(_axes(node) or ())]
        if None in (_axes(inner), _axes(node)) or min(axes) < 0 or len(set(axes)) < len(axes):
            continue
        result = node.outputs[0]
        inputs = [first_input(inner), constant(graph, axes)]
        replace(result, insert(node, "ReduceMean", inputs, {"keepdims": 1}, axes=sizes.of(result), like=result))


def _axes(node: ir.Node) -> tuple[int, ...] | None:
    """The axes over which a node that keeps them takes its mean."""
    keeps = node.attributes.get_int("keepdims", 1) == 1
    return (whole_numbers(node.inputs[1]) or None) if keeps and len(node.inputs) > 1 else None
