"""The graph of a file in float32 whose bfloat16 weights stay in their data file: each is cast where it is used.

A wide copy of all weights would take three times their memory, and be written once more.
"""

from __future__ import annotations

from pathlib import Path

import onnx_ir as ir

from anyshape.conversion.widening import widened


def widened_file(path: Path) -> ir.Model:
    """A model to be saved beside the file, with which it shares its data."""
    model = ir.load(path)
    kept = {name: value.const_value for name, value in model.graph.initializers.items() if _stays(value.const_value)}
    for name in kept:  # as inputs they are widened in type alone
        model.graph.inputs.append(model.graph.initializers.pop(name))
    twin = widened(model)
    for name, tensor in kept.items():
        _cast(twin.graph, next(value for value in twin.graph.inputs if value.name == name), tensor)
    return twin


def _stays(tensor: ir.TensorProtocol | None) -> bool:
    return isinstance(tensor, ir.ExternalTensor) and tensor.dtype == ir.DataType.BFLOAT16


def _cast(graph: ir.Graph, wide: ir.Value, tensor: ir.TensorProtocol | None) -> None:
    """Put a stored weight and a cast in the place of an input."""
    graph.inputs.remove(wide)
    user = _first_user(graph, wide)
    stored = ir.Value(name=f"{wide.name}_narrow", const_value=tensor)
    stored.dtype, stored.shape = ir.DataType.BFLOAT16, wide.shape
    node = ir.node("Cast", [stored], attributes={"to": int(ir.DataType.FLOAT)})
    wide.replace_all_uses_with(node.outputs[0])
    node.outputs[0].name = wide.name
    node.outputs[0].dtype = ir.DataType.FLOAT
    if user is not None:
        graph.insert_before(user, node)
        graph.register_initializer(stored)


def _first_user(graph: ir.Graph, value: ir.Value) -> ir.Node | None:
    """The first node that uses a value, or holds one that does: a runtime that goes by order casts just before."""
    users = {node for node, _ in value.uses()}
    outer = None
    for node in ir.traversal.RecursiveGraphIterator(graph):
        outer = node if node.graph is graph else outer
        if node in users:
            return outer
    return None
