"""A model with its weights inside, written straight from memory: protobuf would copy them three times on the way.

In a protobuf message fields may stand in any order, and each says how long it is. So the model is encoded without its
weights, and these follow at the end of its graph.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import onnx
import onnx_ir as ir

from anyshape.onnxfile.saving_external_weights import is_large, put_back

_GRAPH = onnx.ModelProto.DESCRIPTOR.fields_by_name["graph"].number
_INITIALIZER = onnx.GraphProto.DESCRIPTOR.fields_by_name["initializer"].number
_RAW_DATA = onnx.TensorProto.DESCRIPTOR.fields_by_name["raw_data"].number
_MOST_BYTES = 2**31 - 1
"""What protobuf reads."""
_ROOM = 2**20
"""For what stands before the tensors and beside the graph."""


def save(model: ir.Model, path: Path) -> None:
    """Write the model with all weights in it."""
    values = [value for value in model.graph.initializers.values() if is_large(value) and _has_bytes(value.const_value)]
    tensors = {str(value.name): value.const_value for value in values if value.const_value is not None}
    weights = sum(tensor.nbytes for tensor in tensors.values())
    if not tensors or weights > _MOST_BYTES:
        ir.save(model, path)  # which says what is wrong
        return
    proto = _without(model, values)
    graph = proto.graph.SerializeToString()
    if weights + len(graph) > _MOST_BYTES - _ROOM:
        ir.save(model, path)
        return
    proto.ClearField("graph")
    with path.open("wb") as file:
        file.write(proto.SerializeToString())
        _write_graph(file, graph, tensors)


def _has_bytes(tensor: object) -> bool:
    """Texts have none of their own, and weights in another file stay there."""
    return not isinstance(tensor, ir.StringTensor | ir.ExternalTensor)


def _without(model: ir.Model, values: list[ir.Value]) -> onnx.ModelProto:
    """The model without these weights."""
    nothing = ir.tensor([0])
    with put_back(values):
        for value in values:
            value.const_value = nothing
        proto = ir.to_proto(model)
    names = {value.name for value in values}
    rest = [one for one in proto.graph.initializer if one.name not in names]
    del proto.graph.initializer[:]
    proto.graph.initializer.extend(rest)
    return proto


def _write_graph(file: BinaryIO, graph: bytes, tensors: Mapping[str, ir.TensorProtocol]) -> None:
    """The rest of a graph, and the weights behind it."""
    heads = {name: _head(name, tensor) for name, tensor in tensors.items()}
    lengths = {name: len(head) + tensors[name].nbytes for name, head in heads.items()}
    whole = len(graph) + sum(len(_start(_INITIALIZER, length)) + length for length in lengths.values())
    file.write(_start(_GRAPH, whole) + graph)
    for name, tensor in tensors.items():
        data = tensor.tobytes()
        if len(data) != tensor.nbytes:
            raise ValueError(f"{name} says that it has {tensor.nbytes} bytes, and has {len(data)}")
        file.write(_start(_INITIALIZER, lengths[name]) + heads[name])
        file.write(data)


def _head(name: str, tensor: ir.TensorProtocol) -> bytes:
    """A tensor up to its data."""
    proto = onnx.TensorProto(name=name, data_type=tensor.dtype.value, dims=tensor.shape.numpy())
    if tensor.doc_string:
        proto.doc_string = tensor.doc_string
    proto.metadata_props.extend(onnx.StringStringEntryProto(key=k, value=v) for k, v in tensor.metadata_props.items())
    return bytes(proto.SerializeToString()) + _start(_RAW_DATA, tensor.nbytes)


def _start(field: int, length: int) -> bytes:
    """What stands before the bytes of a field: its number, that it has a length, and the length."""
    return _varint(field << 3 | 2) + _varint(length)


def _varint(number: int) -> bytes:
    """Seven bits in each byte, the lowest first; the eighth says that more follow."""
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])
