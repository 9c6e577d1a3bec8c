"""Symbolic shapes of one node's outputs, by onnx-shape-inference; what it does not know is asked of the observation."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir
from onnx_shape_inference import ShapeInferenceContext, registry

from anyshape.sizes.expressions import Shape, Size, dim_symbol, from_dim


class Inference:
    """One context for a whole walk: it carries the values of shapes that nodes compute."""

    def __init__(self, opsets: Mapping[str, int], names: list[str]) -> None:
        registry.collect()
        self._context = ShapeInferenceContext(opsets, policy="override")
        self._context.reserve_symbol_names(names)

    def infer(self, node: ir.Node) -> bool:
        """Set shapes and types of the outputs; False where the operator is unknown or the inference gives up."""
        rule = registry.get(node.domain or "", node.op_type, version=self._context.get_opset_version(node.domain or ""))
        if rule is None:
            return False
        for value in node.inputs:
            if value is not None:
                self._context.name_anonymous_dims(value)
        try:
            rule(self._context, node)
        except Exception:  # noqa: BLE001  inference by others may fail in any way on a file by others
            return False
        return True

    def numbers(self, value: ir.Value | None) -> Shape | None:
        """What a tensor of sizes holds, as expressions."""
        if value is None:
            return None
        found = self._context.get_symbolic_value(value)
        return None if found is None else tuple(from_dim(entry) for entry in found)

    def set_numbers(self, value: ir.Value, numbers: Shape) -> None:
        entries = [int(n) if n.is_Integer else ir.SymbolicDim(n) for n in numbers]
        self._context.set_symbolic_value(value, entries)

    def is_unknown(self, size: Size) -> bool:
        """Whether a size depends on the data."""
        return any(self._context.is_generated_symbol(symbol.name) for symbol in size.free_symbols)

    def unknown(self) -> Size:
        return dim_symbol(str(self._context.new_symbolic_dim().value))
