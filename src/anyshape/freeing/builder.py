"""New nodes and constants, placed before the node that the walk is at; sizes are read off the inputs, once each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import sympy

from anyshape.freeing.records import PinnedError
from anyshape.onnxfile.graph import initializer, names_in
from anyshape.sizes import budgets
from anyshape.sizes.expressions import ONE, Shape, Size, from_ir, is_number, number, spelled, to_ir

_INT64 = ir.DataType.INT64
Inputs = Sequence[ir.Value | None]


class Builder:
    """Puts nodes into the graph. Sizes go to the main graph, where the graphs inside of a node see them, too."""

    def __init__(self, model: ir.Model, sources: Mapping[Size, tuple[ir.Value, int]]) -> None:
        self.root = model.graph
        self._sources = sources
        self._before: list[ir.Node] = []
        self._sizes: dict[Size, ir.Value] = {}
        self._constants: dict[tuple[str, tuple[int, ...], bytes], ir.Value] = {}
        self._taken = names_in(model)
        self._made: set[str] = set()
        self._count = 0

    # ---- where

    def enter(self, node: ir.Node) -> None:
        self._before.append(node)

    def leave(self) -> None:
        self._before.pop()

    @property
    def graph(self) -> ir.Graph | ir.Function | None:
        return self._before[-1].graph

    # ---- what

    def constant(self, array: Any) -> ir.Value:
        array = np.asarray(array)
        key = (str(array.dtype), array.shape, array.tobytes())
        if key not in self._constants:
            self._constants[key] = initializer(self.root, self._new_name("constant"), array)
        return self._constants[key]

    def node(
        self, operator: str, inputs: Inputs, shape: Shape, *, dtype: ir.DataType | None = _INT64, **attributes: Any
    ) -> ir.Value:
        return self.insert(ir.node(operator, list(inputs), attributes), shape, dtype)

    def insert(self, node: ir.Node, shape: Shape | None, dtype: ir.DataType | None, *, root: bool = False) -> ir.Value:
        """Name a node of ours, place it, and give its output."""
        value = node.outputs[0]
        node.name = value.name = self._new_name(node.op_type.lower())
        value.shape = None if shape is None else to_ir(shape)
        value.type = None if dtype is None else ir.TensorType(dtype)
        place = self._before[0 if root else -1]
        place.prepend(node)
        return value

    def joined(self, operator: str, one: ir.Value, other: ir.Value) -> ir.Value:
        """Two values of the same rank and type, which broadcast."""
        pairs = zip(from_ir(one.shape) or (), from_ir(other.shape) or (), strict=True)
        return self.node(operator, [one, other], tuple(b if a == 1 else a for a, b in pairs), dtype=one.dtype)

    def cast(self, value: ir.Value, dtype: ir.DataType, shape: Shape) -> ir.Value:
        if value.dtype == dtype:
            return value
        return self.node("Cast", [value], shape, dtype=dtype, to=int(dtype))

    def reshaped(self, value: ir.Value, target: Sequence[int], shape: Shape) -> ir.Value:
        """Works in every opset, other than Squeeze and Unsqueeze."""
        return self.node("Reshape", [value, self.constant(np.array(target, np.int64))], shape, dtype=value.dtype)

    def ramp(self, size: Size, axis: int, rank: int) -> ir.Value:
        """0, 1, 2, ... along an axis, of size 1 along the others."""
        scalar = self.reshaped(self.size(size), [], ())
        zero, one = self.constant(np.array(0, np.int64)), self.constant(np.array(1, np.int64))
        line = self.node("Range", [zero, scalar, one], (size,))
        shape = [ONE] * rank
        shape[axis] = size
        return self.reshaped(line, [-1 if i == axis else 1 for i in range(rank)], tuple(shape))

    def expanded(self, value: ir.Value, shape: Shape, wants: Mapping[int, Size]) -> ir.Value:
        """Repeated along axes of size 1."""
        target = [wants.get(axis, ONE) for axis in range(len(shape))]
        new = tuple(wants.get(axis, size) for axis, size in enumerate(shape))
        return self.node("Expand", [value, self.vector(target)], new, dtype=value.dtype)

    def sliced(self, value: ir.Value, parts: Mapping[int, tuple[Size, Size]], shape: Shape) -> ir.Value:
        """From start to end along each of these axes."""
        starts = self.vector([start for start, _ in parts.values()])
        ends = self.vector([end for _, end in parts.values()])
        axes = self.constant(np.array(list(parts), np.int64))
        return self.node("Slice", [value, starts, ends, axes], shape, dtype=value.dtype)

    # ---- sizes

    def vector(self, sizes: Sequence[Size]) -> ir.Value:
        """A shape as a tensor."""
        if all(is_number(size) for size in sizes):
            return self.constant(np.array([int(size) for size in sizes], np.int64))
        if len(sizes) == 1:
            return self.size(sizes[0])
        return self._root_node("Concat", [self.size(size) for size in sizes], len(sizes), axis=0)

    def size(self, size: Size) -> ir.Value:
        """One size as a tensor of one element."""
        if is_number(size):
            return self.constant(np.array([int(size)], np.int64))
        if size not in self._sizes:
            self._sizes[size] = self._computed_size(size)
        return self._sizes[size]

    def _computed_size(self, size: Size) -> ir.Value:
        if size.is_Symbol:
            return self._read_size(size)
        numerator, denominator = _fraction(size)
        if denominator != 1:
            return self._root_node("Div", [self.size(numerator), self.size(denominator)])
        if size.is_Add or size.is_Mul:
            return self._chain("Add" if size.is_Add else "Mul", size.args)
        if isinstance(size, (sympy.Max, sympy.Min)):
            return self._root_node("Max" if isinstance(size, sympy.Max) else "Min", [self.size(a) for a in size.args])
        if isinstance(size, sympy.ceiling):
            return self.size(-sympy.floor(-size.args[0]))
        if size.is_Pow and size.exp.is_Integer and 1 < size.exp <= budgets.LARGEST_POWER_WRITTEN:
            return self._chain("Mul", [size.base] * int(size.exp))
        raise PinnedError(f"the size `{spelled(size)}` cannot be computed in the file")

    def _chain(self, operator: str, sizes: Sequence[Size]) -> ir.Value:
        result = self.size(sizes[0])
        for size in sizes[1:]:
            result = self._root_node(operator, [result, self.size(size)])
        return result

    def _read_size(self, symbol: Size) -> ir.Value:
        if symbol not in self._sources:
            raise PinnedError("a size that depends on the data is needed where none can be read")
        value, axis = self._sources[symbol]
        rank = len(value.shape or ())
        whole = self._root_node("Shape", [value], rank)
        return self._root_node("Gather", [whole, self.constant(np.array([axis], np.int64))], 1, axis=0)

    def _root_node(self, operator: str, inputs: Inputs, length: int = 1, **attributes: Any) -> ir.Value:
        return self.insert(ir.node(operator, list(inputs), attributes), (number(length),), _INT64, root=True)

    def made(self, one: ir.Node | ir.Value) -> bool:
        """Whether a node or a constant is ours, and not the file's."""
        return one.name in self._made

    def _new_name(self, hint: str) -> str:
        while True:
            self._count += 1
            name = f"freed_{hint}_{self._count}"
            if name not in self._taken:
                self._made.add(name)
                return name


def _fraction(size: Size) -> tuple[Size, Size]:
    """Numerator and denominator where the size is a division that comes out whole, or is rounded down."""
    inner = size.args[0] if isinstance(size, sympy.floor) else size
    numerator, denominator = sympy.together(inner).as_numer_denom()
    if isinstance(size, sympy.floor) and denominator == 1:
        return size, ONE
    return numerator, denominator
