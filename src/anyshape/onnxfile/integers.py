"""The whole numbers that stand in a file: shapes, axes and ends that somebody wrote as numbers, and lengths of tables.

At such a size, and beside it, a file that was made for one size shows it: they are the sizes to try.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import onnx
import onnx_ir as ir

from anyshape.onnxfile.graph import every_node, integers_in, proto_graphs
from anyshape.sizes import budgets


def integer_constants(model: onnx.ModelProto) -> dict[str, tuple[int, ...]]:
    """Value name -> its numbers, for short constants of whole numbers; what cannot be read is left out."""
    found: dict[str, tuple[int, ...]] = {}
    for graph in proto_graphs(model):
        found |= {t.name: numbers for t in graph.initializer if (numbers := _numbers_of_tensor(t)) is not None}
        for node in graph.node:
            if node.op_type == "Constant" and node.output and (numbers := _numbers_of_constant(node)) is not None:
                found[node.output[0]] = numbers
    return found


def _numbers_of_constant(node: onnx.NodeProto) -> tuple[int, ...] | None:
    for attribute in node.attribute:
        if attribute.name == "value" and attribute.HasField("t"):
            return _numbers_of_tensor(attribute.t)
        if attribute.name == "value_int":
            return (int(attribute.i),)
        if attribute.name == "value_ints" and len(attribute.ints) <= budgets.MOST_NUMBERS_OF_A_SIZE_CONSTANT:
            return tuple(int(number) for number in attribute.ints)
    return None


def _numbers_of_tensor(tensor: onnx.TensorProto) -> tuple[int, ...] | None:
    if tensor.external_data or any(n < 0 for n in tensor.dims):
        return None
    try:
        return integers_in(ir.serde.deserialize_tensor(tensor), budgets.MOST_NUMBERS_OF_A_SIZE_CONSTANT)
    except Exception:  # noqa: BLE001  a file is data: a tensor that contradicts itself has no numbers
        return None


def sizes_written(model: onnx.ModelProto) -> tuple[int, ...]:
    """The sizes that stand in a file by whomever: its short constants first, then the lengths of its tables."""
    written = {n for numbers in integer_constants(model).values() for n in _positive(numbers)}
    tables = {n for graph in proto_graphs(model) for t in graph.initializer for n in _positive(t.dims) if n > 1}
    return (*sorted(written), *sorted(tables - written))


def integers_of(model: ir.Model) -> tuple[int, ...]:
    """The same of a model in memory, whose weights are known: their lengths count channels and are left out."""
    tensors = [value.const_value for value in model.graph.initializers.values() if not _is_weight(value)]
    written: set[int] = set()
    for node in every_node(model.graph):
        for attribute in node.attributes.values():
            if not isinstance(attribute, ir.Attr):
                continue
            if attribute.type == ir.AttributeType.TENSOR:
                tensors.append(attribute.value)
            elif node.op_type == "Constant" and attribute.type in (ir.AttributeType.INT, ir.AttributeType.INTS):
                written |= _positive(np.ravel(attribute.value))
    lengths: set[int] = set()
    for tensor in (tensor for tensor in tensors if tensor is not None):
        lengths.update(size for size in tensor.shape if isinstance(size, int) and size > 1)
        if not isinstance(tensor, ir.ExternalTensor):
            written |= _positive(integers_in(tensor, budgets.MOST_NUMBERS_OF_A_SIZE_CONSTANT) or ())
    return (*sorted(written), *sorted(lengths - written))


_WEIGHTED = {
    "Conv", "ConvTranspose", "Gemm", "MatMul", "BatchNormalization", "InstanceNormalization", "LayerNormalization",
    "RMSNormalization", "RNN", "LSTM", "GRU",
}  # fmt: skip


def _is_weight(value: ir.Value) -> bool:
    """Whether it is used as the weight of layers alone: its lengths count channels, and no size that varies."""
    uses = value.uses()
    return bool(uses) and all(use.node.op_type in _WEIGHTED and use.idx > 0 for use in uses)


def _positive(numbers: Iterable[int]) -> set[int]:
    return {int(number) for number in numbers if 0 < int(number) < budgets.LARGEST_SIZE_WRITTEN_IN_A_FILE}
