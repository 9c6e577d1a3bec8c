"""What is known of values before a run: the numbers of constants.

What is computed from constants alone has numbers, too, node by node and only when asked for. With the shapes that were
observed, so has what is computed from sizes: those at the file's own sizes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from anyshape.onnxfile.graph import attribute, graphs_in, is_standard
from anyshape.runtime.confinement import StoppedError, open_runtime_session
from anyshape.runtime.opening import Opening
from anyshape.sizes import budgets

Array = Any
_RANDOM = {
    "RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial", "Dropout",
}  # fmt: skip


class Evaluator:
    """Remembers what it has computed; a value that depends on an input has none."""

    def __init__(self, model: ir.Model, shapes: Mapping[str, tuple[int, ...]] | None = None) -> None:
        self._opsets, self._ir_version = dict(model.opset_imports), model.ir_version
        self._shapes = shapes or {}
        self._known: dict[ir.Value, Array] = {}

    def value(self, value: ir.Value | None, depth: int = 0) -> Array:
        """The numbers, or None where they are unknown, too many, or not numbers."""
        if value is None or depth > budgets.DEEPEST_COMPUTATION:
            return None
        if value not in self._known:
            self._known[value] = self._computed_value(value, depth)
        return self._known[value]

    def _computed_value(self, value: ir.Value, depth: int) -> Array:
        if value.const_value is not None:
            return _array_of(value.const_value)
        node = value.producer()
        if node is None or not is_standard(node) or node.op_type in _RANDOM or graphs_in(node):
            return None
        measured = node.inputs[0].name if node.op_type == "Shape" and node.inputs[0] is not None else None
        if measured is not None and measured in self._shapes:
            part = slice(attribute(node, "start"), attribute(node, "end"))
            return np.array(self._shapes[measured][part], np.int64)
        inputs = [self.value(given, depth + 1) for given in node.inputs]
        if any(array is None and given is not None for array, given in zip(inputs, node.inputs, strict=True)):
            return None
        results = self._results_of(node, inputs)
        self._known |= dict(zip(node.outputs, results, strict=False)) if results else {}
        return self._known.get(value)

    def _results_of(self, node: ir.Node, inputs: list[Array]) -> list[Array]:
        """One node as a model of its own."""
        names = [f"i{k}" if array is not None else "" for k, array in enumerate(inputs)]
        outputs = [f"o{k}" for k in range(len(node.outputs))]
        try:
            alone = onnx.helper.make_node(node.op_type, names, outputs, domain=node.domain)
            alone.attribute.extend(ir.to_proto(attribute) for attribute in node.attributes.values())
            given = {name: array for name, array in zip(names, inputs, strict=True) if name}
            types = [
                onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
                for name, array in given.items()
            ]
            graph = onnx.helper.make_graph(
                [alone], "one", types, [onnx.helper.make_empty_tensor_value_info(name) for name in outputs]
            )
            opsets = [onnx.helper.make_opsetid(domain, version) for domain, version in self._opsets.items()]
            model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=self._ir_version)
            session = open_runtime_session(Opening(model.SerializeToString(), threads=1))
            return session.run(outputs, given)  # type: ignore[no-any-return]
        except StoppedError:
            raise
        except Exception:  # noqa: BLE001  what cannot be computed alone is no constant
            return []


def _array_of(tensor: ir.TensorProtocol) -> Array:
    """Without a copy; weights beside the file are mapped, not read."""
    sizes = [size for size in tensor.shape if isinstance(size, int)]
    if tensor.dtype == ir.DataType.STRING or math.prod(sizes) > budgets.MOST_ELEMENTS_COMPUTED:
        return None
    try:
        return tensor.numpy()
    except Exception:  # noqa: BLE001  a file is data: a tensor that contradicts itself has no numbers
        return None
