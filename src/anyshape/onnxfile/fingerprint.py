"""The fingerprint of what a file computes, by which a contract can tell whether the graph is still the one checked.

It is the same wherever the weights lie and whatever metadata say. Of large weights it takes samples: it tells what
tools have done, and is no proof against somebody who means to deceive.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import onnx
from onnx import numpy_helper

from anyshape.onnxfile.graph import graphs_within
from anyshape.sizes import budgets

_KINDS = onnx.AttributeProto


def fingerprint(model: onnx.ModelProto, folder: Path) -> str:
    """Of a model whose weights lie in itself or in this folder."""
    found = hashlib.sha256()
    for part in _telling_parts(model, folder):
        found.update(len(part).to_bytes(8, "big"))
        found.update(part)
    return found.hexdigest()[:32]


def _telling_parts(model: onnx.ModelProto, folder: Path) -> Iterator[bytes]:
    yield from sorted(_bytes_of(entry) for entry in model.opset_import)
    for graph in graphs_within(model.graph, *model.functions):
        if isinstance(graph, onnx.GraphProto):
            yield from _ports(graph)
            for tensor in graph.initializer:
                yield tensor.name.encode()
                yield from _content(tensor, folder)
            for sparse in graph.sparse_initializer:
                yield sparse.values.name.encode()
                yield from (part for one in (sparse.values, sparse.indices) for part in _content(one, folder))
        else:
            yield "\n".join((graph.domain, graph.name, *graph.input, "", *graph.output)).encode()
        for node in graph.node:
            yield "\n".join((node.domain, node.op_type, *node.input, "", *node.output)).encode()
            for attribute in node.attribute:  # in their order, which is that of the graphs inside of them
                yield from _attribute(attribute, folder)


def _ports(graph: onnx.GraphProto) -> Iterator[bytes]:
    """Shapes are no part of it: they are labels, which tools infer and rename."""
    for port in (*graph.input, *graph.output):
        yield f"{port.name} {port.type.tensor_type.elem_type}".encode()


def _attribute(attribute: onnx.AttributeProto, folder: Path) -> Iterator[bytes]:
    yield f"{attribute.name} {attribute.type}".encode()
    if attribute.type in (_KINDS.TENSOR, _KINDS.TENSORS):
        for tensor in (attribute.t, *attribute.tensors):
            yield from _content(tensor, folder)
    elif attribute.type not in (_KINDS.GRAPH, _KINDS.GRAPHS):  # whose nodes have their turn
        yield _bytes_of(attribute)


def _bytes_of(message: onnx.AttributeProto | onnx.OperatorSetIdProto) -> bytes:
    return bytes(message.SerializeToString(deterministic=True))


def _content(tensor: onnx.TensorProto, folder: Path) -> Iterator[bytes]:
    """Type, shape and numbers; of many numbers some, spread over all."""
    yield f"{tensor.data_type} {list(tensor.dims)}".encode()
    places = {entry.key: entry.value for entry in tensor.external_data}
    if "location" in places:
        path, start = folder / places["location"], int(places.get("offset", 0))
        length = int(places.get("length", path.stat().st_size - start))
        with path.open("rb") as file:
            for part in _samples(length):
                file.seek(start + part.start)
                yield file.read(part.stop - part.start)
        return
    content = tensor.raw_data or _single_numbers(tensor)
    for part in _samples(len(content)):
        yield content[part]


def _single_numbers(tensor: onnx.TensorProto) -> bytes:
    if tensor.data_type == onnx.TensorProto.STRING:
        return b"\0".join(tensor.string_data)
    return numpy_helper.to_array(tensor).tobytes() if tensor.dims or tensor.ByteSize() else b""


def _samples(length: int) -> Iterator[slice]:
    count, size = budgets.SAMPLES_OF_A_WEIGHT, budgets.BYTES_OF_A_SAMPLE
    if length <= count * size:
        yield slice(0, length)
        return
    for number in range(count):
        start = (length - size) * number // (count - 1)
        yield slice(start, start + size)
