"""The short whole-number constants of a file: shapes, axes and ends that somebody wrote as numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator

import onnx
import onnx.numpy_helper

_MOST_NUMBERS = 16
_LARGEST_SIZE = 2**31


def graphs_of(model: onnx.ModelProto) -> Iterator[onnx.GraphProto]:
    """The main graph and every graph inside it."""
    waiting = [model.graph]
    while waiting:
        graph = waiting.pop()
        yield graph
        for attribute in (attribute for node in graph.node for attribute in node.attribute):
            waiting += [attribute.g] if attribute.HasField("g") else []
            waiting += attribute.graphs


def integer_constants(model: onnx.ModelProto) -> dict[str, tuple[int, ...]]:
    """Value name -> its numbers, for short constants of whole numbers; what cannot be read is left out."""
    found: dict[str, tuple[int, ...]] = {}
    for graph in graphs_of(model):
        found |= {t.name: numbers for t in graph.initializer if (numbers := _numbers(t)) is not None}
        for node in graph.node:
            if node.op_type == "Constant" and node.output and (numbers := _numbers_of_constant(node)) is not None:
                found[node.output[0]] = numbers
    return found


def telling_sizes(model: onnx.ModelProto) -> tuple[int, ...]:
    """The sizes that stand in a file: its short constants first, then the lengths of its tables."""
    written = {n for numbers in integer_constants(model).values() for n in numbers if 0 < n < _LARGEST_SIZE}
    tables = {n for graph in graphs_of(model) for t in graph.initializer for n in t.dims if 1 < n < _LARGEST_SIZE}
    return (*sorted(written), *sorted(tables - written))


def _numbers_of_constant(node: onnx.NodeProto) -> tuple[int, ...] | None:
    for attribute in node.attribute:
        if attribute.name == "value" and attribute.HasField("t"):
            return _numbers(attribute.t)
        if attribute.name == "value_int":
            return (int(attribute.i),)
        if attribute.name == "value_ints" and len(attribute.ints) <= _MOST_NUMBERS:
            return tuple(int(number) for number in attribute.ints)
    return None


def _numbers(tensor: onnx.TensorProto) -> tuple[int, ...] | None:
    if tensor.data_type not in (onnx.TensorProto.INT64, onnx.TensorProto.INT32) or tensor.external_data:
        return None
    if any(n < 0 for n in tensor.dims) or math.prod(tensor.dims) > _MOST_NUMBERS:
        return None
    try:
        return tuple(int(number) for number in onnx.numpy_helper.to_array(tensor).ravel())
    except Exception:  # noqa: BLE001  a file is data: a tensor that contradicts itself has no numbers
        return None
