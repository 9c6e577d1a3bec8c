"""ONNX's RotaryEmbedding with tables for every row of the batch.

The optimiser writes the operator where a model turns pairs of features, with tables of sines and cosines that hold one
row for the whole batch, as most models make them. ONNX Runtime takes them for one row alone: here they are spread.
"""

from __future__ import annotations

import onnx_ir as ir

_TABLES = (1, 2)
_TABLE_AXES = 3
_WITHOUT_POSITIONS = 3
"""Inputs of a node whose tables are already looked up: what is turned, cosines, sines."""


def spread_rotary_tables(model: ir.Model) -> None:
    """Expand the tables of each such node to the batch of what is turned."""
    for node in list(ir.traversal.RecursiveGraphIterator(model.graph)):
        inputs = [value for value in node.inputs if value is not None]
        if node.op_type != "RotaryEmbedding" or node.domain not in ("", "ai.onnx") or len(inputs) != _WITHOUT_POSITIONS:
            continue
        for index in _TABLES:
            node.replace_input_with(index, _spread(node, inputs[0], inputs[index]))


def _spread(node: ir.Node, turned: ir.Value, table: ir.Value) -> ir.Value:
    sizes, batches = list(table.shape or ()), list(turned.shape or ())
    if sizes and (len(sizes) != _TABLE_AXES or sizes[:1] == batches[:1]):
        return table
    batch = ir.node("Shape", [turned], {"start": 0, "end": 1})
    rest = ir.node("Shape", [table], {"start": 1, "end": _TABLE_AXES})
    shape = ir.node("Concat", [batch.outputs[0], rest.outputs[0]], {"axis": 0})
    expanded = ir.node("Expand", [table, shape.outputs[0]])
    for made in (batch, rest, shape, expanded):
        made.metadata_props.update(node.metadata_props)
    assert node.graph is not None
    node.graph.insert_before(node, [batch, rest, shape, expanded])
    return expanded.outputs[0]
