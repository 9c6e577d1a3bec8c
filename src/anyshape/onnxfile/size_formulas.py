"""What the values of a file are at many sizes at once, as far as sizes alone decide them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np
import onnx_ir as ir

from anyshape.onnxfile.graph import attribute, constant_of
from anyshape.sizes import budgets, expressions

Array = Any
"""A row of numbers for each choice of sizes; how a value is laid out otherwise does not count here."""


class SizeFormulas:
    """What the values of a file are at many sizes, with fractions in one type; KeyError for all but formulas."""

    def __init__(self, columns: Mapping[str, Array], kind: type = np.float64) -> None:
        self._columns = {expressions.dim_symbol(dim): column for dim, column in columns.items()}
        self.kind = kind
        """In which fractions are computed."""
        self._known: dict[ir.Value, Array] = {}

    def numbers_of(self, value: ir.Value | None) -> Array | None:
        """What a value is; None where not sizes alone decide."""
        return unless_unknown(lambda: self.of(value))

    def of(self, value: ir.Value | None) -> Array:
        if value is None:
            raise KeyError(value)
        if value not in self._known:
            constant = constant_of(value)
            self._known[value] = self._result_of_node(value) if constant is None else self._literal_numbers(constant)
        return self._known[value]

    def _literal_numbers(self, numbers: Array) -> Array:
        """A literal in float32 is taken for the decimal number that it was written as."""
        if numbers.size > budgets.LONGEST_SHORT_CONSTANT:
            raise KeyError(numbers.size)
        if numbers.dtype.kind != "f":
            return numbers.reshape(1, -1).astype(np.int64)
        return np.asarray([[self.kind(str(number)) for number in numbers.ravel()]])

    def _result_of_node(self, value: ir.Value) -> Array:
        node = value.producer()
        if node is None:
            raise KeyError(value.name)
        compute = _LAYOUTS.get(node.op_type)
        return _FUNCTIONS[node.op_type](*map(self.of, node.inputs)) if compute is None else compute(self, node)

    def sizes_read(self, node: ir.Node) -> Array:
        (source,) = node.inputs
        shape = None if source is None else source.shape
        if shape is None:
            raise KeyError(node.name)
        dims = list(shape)[attribute(node, "start", 0) : attribute(node, "end", None)]
        return np.stack(np.broadcast_arrays(*map(self.size_of, dims)), axis=-1)

    def cast(self, node: ir.Node) -> Array:
        is_float = ir.DataType(attribute(node, "to")).is_floating_point()
        return self.of(node.inputs[0]).astype(self.kind if is_float else np.int64)

    def gathered(self, node: ir.Node) -> Array:
        return self.of(node.inputs[0])[:, self.of(node.inputs[1])[0]]

    def sliced(self, node: ir.Node) -> Array:
        start, end = (int(self.of(one)[0, 0]) for one in node.inputs[1:3])
        return self.of(node.inputs[0])[:, start:end]

    def joined(self, node: ir.Node) -> Array:
        parts = [self.of(one) for one in node.inputs]
        rows = max(len(part) for part in parts)
        return np.concatenate([np.broadcast_to(part, (rows, part.shape[1])) for part in parts], axis=1)

    def size_of(self, dim: int | ir.SymbolicDim) -> Array:
        return np.atleast_1d(expressions.evaluate(expressions.from_dim(dim), self._columns)).astype(np.int64)


def unless_unknown(compute: Callable[[], Array]) -> Array | None:
    """What is computed; None where that takes more than formulas of sizes."""
    try:
        with np.errstate(all="ignore"):
            return compute()
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, RecursionError):
        return None


_LAYOUTS: Mapping[str, Callable[[SizeFormulas, ir.Node], Array]] = {
    "Shape": SizeFormulas.sizes_read,
    "Size": lambda formulas, node: formulas.sizes_read(node).prod(axis=-1, keepdims=True),
    "Cast": SizeFormulas.cast,
    **dict.fromkeys(
        ("Squeeze", "Unsqueeze", "Reshape", "Identity"), lambda formulas, node: formulas.of(node.inputs[0])
    ),
    "Gather": SizeFormulas.gathered,
    "Slice": SizeFormulas.sliced,
    "Concat": SizeFormulas.joined,
}
"""What reads sizes, and what puts numbers at other places."""


def _quotient(left: Array, right: Array) -> Array:
    """ONNX divides whole numbers towards zero."""
    if left.dtype.kind == "f":
        return left / right
    return np.where(right != 0, np.abs(left) // np.maximum(np.abs(right), 1) * np.sign(left) * np.sign(right), 0)


def _fold_by(function: Callable[[Array, Array], Array]) -> Callable[..., Array]:
    return lambda *parts: reduce(function, parts)


_FUNCTIONS: Mapping[str, Callable[..., Array]] = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": _quotient, "Mod": np.mod, "Pow": np.power,
    "Neg": np.negative, "Abs": np.abs, "Sqrt": np.sqrt, "Log": np.log, "Exp": np.exp, "Sin": np.sin, "Cos": np.cos,
    "Tanh": np.tanh, "Floor": np.floor, "Ceil": np.ceil, "Round": np.round, "Min": _fold_by(np.minimum),
    "Max": _fold_by(np.maximum), "Where": np.where, "Less": np.less, "Greater": np.greater, "Equal": np.equal,
    "LessOrEqual": np.less_equal, "GreaterOrEqual": np.greater_equal, "And": np.logical_and, "Or": np.logical_or,
    "Xor": np.logical_xor, "Not": np.logical_not, "BitwiseAnd": np.bitwise_and, "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor,
}  # fmt: skip
