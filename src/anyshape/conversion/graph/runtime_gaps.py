"""Where ONNX Runtime does not do what ONNX says, the graph says the same in a way that it does right.

Every function changes a model in place that the conversion owns. docs/upstream.md has the faults, each with a test that
fails when it is gone.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from anyshape.onnxfile.graph import (
    constant,
    constant_of,
    every_node,
    first_input,
    insert,
    is_standard,
    new_node,
    replace,
    whole_numbers,
)

# ---- RotaryEmbedding with tables for every row of the batch
#
# The optimiser writes the operator where a model turns pairs of features, with tables of sines and cosines that hold
# one row for the whole batch, as most models make them. ONNX Runtime takes them for one row alone: here they are
# spread.

_TABLES = (1, 2)
_TABLE_AXES = 3
_WITHOUT_POSITIONS = 3
"""Inputs of a node whose tables are already looked up: what is turned, cosines, sines."""


def spread_rotary_tables(model: ir.Model) -> None:
    """Expand the tables of each such node to the batch of what is turned."""
    for node in every_node(model.graph, "RotaryEmbedding"):
        inputs = [value for value in node.inputs if value is not None]
        for index in _TABLES if len(inputs) == _WITHOUT_POSITIONS else ():
            node.replace_input_with(index, _spread_table(node, inputs[0], inputs[index]))


def _spread_table(node: ir.Node, turned: ir.Value, table: ir.Value) -> ir.Value:
    sizes, batches = list(table.shape or ()), list(turned.shape or ())
    if sizes and (len(sizes) != _TABLE_AXES or sizes[:1] == batches[:1]):
        return table
    batch = insert(node, "Shape", [turned], {"start": 0, "end": 1})
    rest = insert(node, "Shape", [table], {"start": 1, "end": _TABLE_AXES})
    return insert(node, "Expand", [table, insert(node, "Concat", [batch, rest], {"axis": 0})])


# ---- zeros in front of a max pool that stay zeros
#
# ONNX Runtime takes a Pad by zero in front of a MaxPool for the pool's own padding, which is by minus infinity: a
# window of negative numbers at the border then gives the largest of them, and not zero. A pad by the smallest number
# above zero is left alone.

_TYPES = (ir.DataType.FLOAT16, ir.DataType.FLOAT, ir.DataType.DOUBLE)
_VALUE = 2
"""The input of Pad that is written around; zero where it is left out."""


def keep_pads_of_pools(model: ir.Model) -> None:
    """Change what is written around the input of a max pool."""
    for node in every_node(model.graph, "MaxPool"):
        padded = node.inputs[0].producer() if node.inputs[0] is not None else None
        if padded is not None and padded.op_type == "Pad" and _pads_by_zero(padded):
            _pad_by_next_to_zero(padded)


def _pads_by_zero(node: ir.Node) -> bool:
    if node.attributes.get_string("mode", "constant") != "constant" or node.outputs[0].dtype not in _TYPES:
        return False
    value = node.inputs[_VALUE] if len(node.inputs) > _VALUE else None
    written = constant_of(value)
    return value is None or (written is not None and not written.any())


def _pad_by_next_to_zero(node: ir.Node) -> None:
    dtype = node.outputs[0].dtype
    assert dtype is not None
    zero = dtype.numpy().type(0)
    least = insert(node, "Constant", [], {"value": ir.tensor(np.asarray(np.nextafter(zero, zero + 1)))})
    if len(node.inputs) <= _VALUE:
        node.resize_inputs(_VALUE + 1)
    node.replace_input_with(_VALUE, least)


# ---- sums and means of what may be empty
#
# ONNX Runtime leaves an empty input as it is where the axes to reduce are counted from the back: of `[2, 0, 6]` reduced
# along axis -1, all 6 are left. Counted from the front, they are reduced.


def count_axes_from_the_front(model: ir.Model) -> None:
    """Change the axes of reductions; where the number of axes is not known, they stay as they are."""
    for node in every_node(model.graph):
        if not node.op_type.startswith("Reduce") or not is_standard(node) or len(node.inputs) < 2:
            continue
        shape, axes = first_input(node).shape, whole_numbers(node.inputs[1])
        if shape is not None and axes and min(axes) < 0:
            node.replace_input_with(1, constant(model.graph, [axis % len(shape) for axis in axes]))


# ---- Fourier transforms of lengths that are no power of two
#
# ONNX Runtime adds up powers of one root of unity, whose error grows with the length: of 1,000 float32 numbers the
# result is right to four digits, where PyTorch's is right to seven. In float64 nothing of that is left to see.

_TRANSFORMS = {"DFT": (0,), "STFT": (0, 2)}
"""Which inputs hold numbers: the signal, and the window."""


def transform_in_double(model: ir.Model) -> None:
    """Compute each transform of float32 in float64."""
    for node in every_node(model.graph):
        places = _TRANSFORMS.get(node.op_type, ()) if is_standard(node) else ()
        given = [(place, node.inputs[place]) for place in places if place < len(node.inputs)]
        if not places or first_input(node).dtype != ir.DataType.FLOAT:
            continue
        for place, value in given:
            if value is not None:
                node.replace_input_with(place, _in_double(node, value))
        _give_float(node)


def _in_double(node: ir.Node, value: ir.Value) -> ir.Value:
    wide = insert(node, "Cast", [value], {"to": int(ir.DataType.DOUBLE)})
    wide.shape, wide.dtype = value.shape, ir.DataType.DOUBLE
    return wide


def _give_float(node: ir.Node) -> None:
    """A cast behind a node, for all that read it."""
    result = node.outputs[0]
    back = new_node("Cast", [result], {"to": int(ir.DataType.FLOAT)}, like=node)
    back.outputs[0].shape, back.outputs[0].dtype = result.shape, ir.DataType.FLOAT
    assert node.graph is not None
    node.graph.insert_after(node, back)
    replace(result, back.outputs[0])
    back.replace_input_with(0, result)
    result.dtype = ir.DataType.DOUBLE
