"""The same graph in float32, for runtimes that cannot run bfloat16."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

_NARROW, _WIDE = ir.DataType.BFLOAT16, ir.DataType.FLOAT


def holds_bfloat16(model: ir.Model) -> bool:
    weights = [value.const_value for value in model.graph.initializers.values() if value.const_value is not None]
    types = [*(value.dtype for value in model.graph.inputs), *(weight.dtype for weight in weights)]
    if _NARROW in types:
        return True
    nodes = ir.traversal.RecursiveGraphIterator(model.graph)
    return any(_casts(attribute) for node in nodes for attribute in node.attributes.values())


def widened(model: ir.Model) -> ir.Model:
    """A copy with every bfloat16 value, constant and cast in float32."""
    twin = ir.from_proto(ir.to_proto(model))
    for value in (*twin.graph.inputs, *twin.graph.initializers.values()):
        _widen_value(value)
    for node in ir.traversal.RecursiveGraphIterator(twin.graph):
        for value in node.outputs:
            _widen_value(value)
        for name, attribute in list(node.attributes.items()):
            if isinstance(attribute, ir.Attr):
                _widen_attribute(node, name, attribute)
    return twin


def _casts(attribute: ir.Attr) -> bool:
    is_type = attribute.type == ir.AttributeType.INT and attribute.name in ("to", "dtype")
    return is_type and attribute.value == int(_NARROW)


def _widen_value(value: ir.Value) -> None:
    if value.dtype == _NARROW:
        value.dtype = _WIDE
    if value.const_value is not None and value.const_value.dtype == _NARROW:
        value.const_value = _widen_tensor(value.const_value)


def _widen_tensor(tensor: ir.TensorProtocol) -> ir.TensorProtocol:
    return ir.Tensor(tensor.numpy().astype(np.float32), name=tensor.name)


def _widen_attribute(node: ir.Node, name: str, attribute: ir.Attr) -> None:
    if attribute.type == ir.AttributeType.TENSOR and attribute.value.dtype == _NARROW:
        node.attributes[name] = ir.AttrTensor(name, _widen_tensor(attribute.value))
    elif _casts(attribute):
        node.attributes[name] = ir.AttrInt64(name, int(_WIDE))
