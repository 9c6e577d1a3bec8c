"""The sizes of one node's results as expressions, by onnx-shape-inference."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping, Sequence

import onnx_ir as ir
from onnx_shape_inference import ShapeInferenceContext, registry

from anyshape.sizes.expressions import Shape, Size, dim_symbol, from_dim, is_number

# it warns of every operator that it does not know, which whoever asks copes with
logging.getLogger("onnx_shape_inference").setLevel(logging.ERROR)


class Inference:
    """One context for a whole walk: it carries the values of shapes that nodes compute."""

    def __init__(self, opsets: Mapping[str, int], names: list[str]) -> None:
        registry.collect()
        self._context = ShapeInferenceContext(opsets, policy="override")
        self._context.reserve_symbol_names(names)

    def infer(self, node: ir.Node) -> None:
        """Set shapes and types of the outputs, unless the operator is unknown or the inference gives up."""
        rule = registry.get(node.domain or "", node.op_type, version=self._context.get_opset_version(node.domain or ""))
        if rule is None:
            return
        for value in node.inputs:
            if value is not None:
                self._context.name_anonymous_dims(value)
        with contextlib.suppress(Exception):  # inference by others may fail in any way on a file by others
            rule(self._context, node)

    def numbers(self, value: ir.Value | None) -> Shape | None:
        """What a tensor of sizes holds, as expressions."""
        if value is None:
            return None
        found = self._context.get_symbolic_value(value)
        return None if found is None else tuple(from_dim(entry) for entry in found)

    def is_unknown(self, size: Size) -> bool:
        """Whether a size depends on the data."""
        return any(self._context.is_generated_symbol(symbol.name) for symbol in size.free_symbols)

    def unknown(self) -> Size:
        return dim_symbol(str(self._context.new_symbolic_dim().value))

    def tell(self, value: ir.Value, numbers: Sequence[Size]) -> None:
        """What a tensor of sizes holds, for what is inferred from it."""
        dims = [int(entry) if is_number(entry) else ir.SymbolicDim(entry) for entry in numbers]
        with contextlib.suppress(Exception):
            self._context.set_symbolic_value(value, dims)
