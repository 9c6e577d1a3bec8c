"""Zeros in front of a max pool that stay zeros.

ONNX Runtime takes a Pad by zero in front of a MaxPool for the pool's own padding, which is by minus infinity: a window
of negative numbers at the border then gives the largest of them, and not zero. A pad by the smallest number above zero
is left alone.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

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
