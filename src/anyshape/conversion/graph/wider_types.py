"""The same graph in a wider type: in float32, for runtimes that cannot run bfloat16, or in float64, for exact results.

Of a file in bfloat16, its weights stay where they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import onnx_ir as ir

from anyshape.onnxfile.graph import constant, every_node, graphs_in, users
from anyshape.sizes import budgets

_NARROW, _WIDE = ir.DataType.BFLOAT16, ir.DataType.FLOAT
_WIDER = {_NARROW: _WIDE, ir.DataType.FLOAT: ir.DataType.DOUBLE}


def holds_bfloat16(model: ir.Model) -> bool:
    weights = [value.const_value for value in model.graph.initializers.values() if value.const_value is not None]
    types = [*(value.dtype for value in model.graph.inputs), *(weight.dtype for weight in weights)]
    attributes = [attribute for node in every_node(model.graph) for attribute in node.attributes.values()]
    return _NARROW in types or any(_casts(attribute, _NARROW) for attribute in attributes)


def widened(model: ir.Model, narrow: ir.DataType = _NARROW) -> ir.Model:
    """A copy with every value, constant and cast of one type in the next wider one."""
    twin = ir.from_proto(ir.to_proto(model))
    for graph in (twin.graph, *(body for node in every_node(twin.graph) for body in graphs_in(node))):
        for value in (*graph.inputs, *graph.initializers.values()):
            _widen_value(value, narrow)
    for node in every_node(twin.graph):
        for value in node.outputs:
            _widen_value(value, narrow)
        for name, attribute in list(node.attributes.items()):
            if isinstance(attribute, ir.Attr):
                _widen_attribute(node, name, attribute, narrow)
    return twin


def _casts(attribute: ir.Attr, narrow: ir.DataType) -> bool:
    is_type = attribute.type == ir.AttributeType.INT and attribute.name in ("to", "dtype")
    return is_type and attribute.value == int(narrow)


def _widen_value(value: ir.Value, narrow: ir.DataType) -> None:
    if value.dtype == narrow:
        value.dtype = _WIDER[narrow]
    if value.const_value is not None and value.const_value.dtype == narrow:
        value.const_value = _widen_tensor(value.const_value)


def _widen_tensor(tensor: ir.TensorProtocol) -> ir.TensorProtocol:
    return ir.Tensor(tensor.numpy().astype(_WIDER[tensor.dtype].numpy()), name=tensor.name)


def _widen_attribute(node: ir.Node, name: str, attribute: ir.Attr, narrow: ir.DataType) -> None:
    if attribute.type == ir.AttributeType.TENSOR and attribute.value.dtype == narrow:
        node.attributes[name] = ir.AttrTensor(name, _widen_tensor(attribute.value))
    elif _casts(attribute, narrow):
        node.attributes[name] = ir.AttrInt64(name, int(_WIDER[narrow]))


# ---- a file whose bfloat16 weights stay in their data file: each is cast where it is used
#
# A wide copy of all weights would take three times their memory, and be written once more. Of a table that is large by
# itself the rows that are looked up are cast, and products with it are taken in blocks.


def widened_file(path: Path) -> ir.Model:
    """A model to be saved beside the file, with which it shares its data."""
    model = ir.load(path)
    every = {name: value.const_value for name, value in model.graph.initializers.items()}
    kept = {name: tensor for name, tensor in every.items() if _stays_outside(tensor)}
    for name in kept:  # as inputs they are widened in type alone
        model.graph.inputs.append(model.graph.initializers.pop(name))
    twin = widened(model)
    for name, tensor in kept.items():
        _cast_where_used(twin.graph, next(value for value in twin.graph.inputs if value.name == name), tensor)
    return twin


def _stays_outside(tensor: ir.TensorProtocol | None) -> bool:
    return isinstance(tensor, ir.ExternalTensor) and tensor.dtype == _NARROW


def _cast_where_used(graph: ir.Graph, wide: ir.Value, tensor: ir.TensorProtocol | None) -> None:
    """Put a stored weight and casts in the place of an input."""
    graph.inputs.remove(wide)
    stored = ir.Value(name=f"{wide.name}_narrow", const_value=tensor)
    stored.dtype, stored.shape = _NARROW, wide.shape
    if tensor is not None and 2 * tensor.nbytes > budgets.LARGEST_CAST_IN_ONE:
        _cast_parts(graph, wide, stored)
    user = _first_user(graph, wide)
    if user is not None:
        node = _cast_to_wide(stored)
        wide.replace_all_uses_with(node.outputs[0])
        node.outputs[0].name = wide.name
        graph.insert_before(user, node)
    if stored.uses():
        graph.register_initializer(stored)


def _cast_to_wide(narrow: ir.Value) -> ir.Node:
    node = ir.node("Cast", [narrow], attributes={"to": int(_WIDE)})
    node.outputs[0].dtype = _WIDE
    return node


def _first_user(graph: ir.Graph, value: ir.Value) -> ir.Node | None:
    """The first node that uses a value, or holds one that does: a runtime that goes by order casts just before."""
    readers = set(users(value))
    outer = None
    for node in every_node(graph):
        outer = node if node.graph is graph else outer
        if node in readers:
            return outer
    return None


# ---- tables


def _cast_parts(graph: ir.Graph, wide: ir.Value, stored: ir.Value) -> None:
    """Give lookups and products in the graph itself what they need of the weight; other users are left."""
    for user, place in list(wide.uses()):
        if user.graph is not graph:
            continue
        if user.op_type == "Gather" and place == 0:
            rows = ir.node("Gather", [stored, user.inputs[1]], attributes=dict(user.attributes))
            _put_instead(graph, user, [rows, _cast_to_wide(rows.outputs[0])])
        elif user.op_type == "MatMul" and place == 1:
            _multiply_in_blocks(graph, user, stored, turned=False)
        elif user.op_type == "Transpose" and user.attributes.get_ints("perm", ()) == (1, 0):
            products = [one for one, at in user.outputs[0].uses() if one.op_type == "MatMul" and at == 1]
            for product in (one for one in products if one.graph is graph):
                _multiply_in_blocks(graph, product, stored, turned=True)
            if not user.outputs[0].uses() and not user.outputs[0].is_graph_output():
                graph.remove(user, safe=True)


def _multiply_in_blocks(graph: ir.Graph, product: ir.Node, stored: ir.Value, *, turned: bool) -> None:
    """`x @ weight`, or with its transpose, as the blocks of the result side by side; each is cast just before its use.

    A runtime that goes by order has one of them in memory at a time.
    """
    sizes = stored.shape.numpy() if stored.shape is not None else ()
    if len(sizes) != 2:
        return
    axis = 0 if turned else 1
    before, after = _as_rows(graph, product, sizes) if turned else ([], [])
    factor = before[-1].outputs[0] if before else product.inputs[0]
    blocks, results = [], []
    for start, end in _blocks(sizes[axis], 4 * sizes[1 - axis]):
        borders = [constant(graph, [number]) for number in (start, end, axis)]
        part = ir.node("Slice", [stored, *borders])
        wide = _cast_to_wide(part.outputs[0])
        kind, attributes = ("Gemm", {"transB": 1}) if turned else ("MatMul", {})
        blocks += [part, wide, ir.node(kind, [factor, wide.outputs[0]], attributes=attributes)]
        results.append(blocks[-1].outputs[0])
    joined = ir.node("Concat", results, attributes={"axis": -1})
    if after:
        after[-1].replace_input_with(0, joined.outputs[0])
    _put_instead(graph, product, [*before, *blocks, joined, *after])


def _as_rows(graph: ir.Graph, product: ir.Node, sizes: Sequence[int]) -> tuple[list[ir.Node], list[ir.Node]]:
    """What makes one matrix of all that is multiplied, and what gives the result its axes back."""
    value = product.inputs[0]
    rows = ir.node("Reshape", [value, constant(graph, [-1, sizes[1]])])
    leading = ir.node("Shape", [value], attributes={"start": 0, "end": -1})
    shape = ir.node("Concat", [leading.outputs[0], constant(graph, [sizes[0]])], attributes={"axis": 0})
    return [rows], [leading, shape, ir.node("Reshape", [None, shape.outputs[0]])]


def _blocks(count: int, row_bytes: int) -> Iterator[tuple[int, int]]:
    step = max(1, budgets.LARGEST_CAST_IN_ONE // row_bytes)
    return ((start, min(start + step, count)) for start in range(0, count, step))


def _put_instead(graph: ir.Graph, node: ir.Node, others: list[ir.Node]) -> None:
    """Other nodes in the place of one; the last of them gives its result."""
    results: Any = others[-1].outputs
    ir.convenience.replace_nodes_and_values(graph, node, [node], others, node.outputs, results)
