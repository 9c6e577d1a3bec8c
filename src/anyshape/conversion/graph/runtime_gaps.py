"""ONNX's RotaryEmbedding with tables for every row of the batch.

The optimiser writes the operator where a model turns pairs of features, with tables of sines and cosines that hold one
row for the whole batch, as most models make them. ONNX Runtime takes them for one row alone: here they are spread.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from anyshape.onnxfile.graph import constant, first_input, whole_numbers

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


_TYPES = (ir.DataType.FLOAT16, ir.DataType.FLOAT, ir.DataType.DOUBLE)
_VALUE = 2
"""The input of Pad that is written around; zero where it is left out."""


def keep_pads_of_pools(model: ir.Model) -> None:
    """Change, in place, what is written around the input of a max pool."""
    for node in list(ir.traversal.RecursiveGraphIterator(model.graph)):
        padded = node.inputs[0].producer() if node.op_type == "MaxPool" and node.inputs[0] is not None else None
        if padded is not None and padded.op_type == "Pad" and _pads_by_zero(padded):
            _pad_by_next_to_zero(padded)


def _pads_by_zero(node: ir.Node) -> bool:
    if node.attributes.get_string("mode", "constant") != "constant" or node.outputs[0].dtype not in _TYPES:
        return False
    value = node.inputs[_VALUE] if len(node.inputs) > _VALUE else None
    if value is None:
        return True
    kept = ir.convenience.get_const_tensor(value)
    return kept is not None and not kept.numpy().any()


def _pad_by_next_to_zero(node: ir.Node) -> None:
    dtype = node.outputs[0].dtype
    assert dtype is not None
    assert node.graph is not None
    zero = dtype.numpy().type(0)
    constant = ir.node("Constant", [], {"value": ir.tensor(np.asarray(np.nextafter(zero, zero + 1)))})
    constant.metadata_props.update(node.metadata_props)
    node.graph.insert_before(node, constant)
    if len(node.inputs) <= _VALUE:
        node.resize_inputs(_VALUE + 1)
    node.replace_input_with(_VALUE, constant.outputs[0])


def count_axes_from_the_front(model: ir.Model) -> None:
    """Change, in place, the axes of reductions; where the number of axes is not known, they stay as they are."""
    for node in list(ir.traversal.RecursiveGraphIterator(model.graph)):
        if not node.op_type.startswith("Reduce") or node.domain not in ("", "ai.onnx") or len(node.inputs) < 2:
            continue
        shape, axes = first_input(node).shape, whole_numbers(node.inputs[1])
        if shape is not None and axes and min(axes) < 0:
            node.replace_input_with(1, constant(model.graph, [axis % len(shape) for axis in axes]))
