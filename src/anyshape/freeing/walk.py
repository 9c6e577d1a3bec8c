"""The walk through a graph, node by node in order: a rule may rewrite the node, then its outputs get their sizes.

Every symbolic shape, taken at the file's own sizes, must be the shape that was observed: a mistake of a rule or of the
inference is met where it happens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnx_ir as ir

from anyshape.freeing.builder import Builder
from anyshape.freeing.inference import Evaluator
from anyshape.freeing.records import Bound, Chooser, Dims, DisagreeingError, PinnedError, Rewrite, State
from anyshape.onnxfile.graph import attribute, is_op, is_standard, name_of
from anyshape.onnxfile.inferred_shapes import Inference
from anyshape.sizes import budgets
from anyshape.sizes.expressions import Factors, Shape, Size, from_ir, is_number, number, product, spelled, to_ir

_DATA_DEPENDENT = {"NonZero", "Unique", "NonMaxSuppression", "Compress", "StringSplit"}
_READS_SIZES = ("Shape", "Size")


class Walk:
    """What the rules share: sizes, factors and constants of values, and what has been written down so far."""

    def __init__(
        self,
        model: ir.Model,
        dims: Dims,
        observed: Mapping[str, tuple[int, ...]],
        chooser: Chooser,
        larger_states: Mapping[State, Mapping[int, Size]],
        rule_for: Callable[[ir.Node], Rule | None],
        *,
        strict: bool,
    ) -> None:
        """`strict` refuses sizes that disagree, which is right as long as there may be another reading."""
        self.strict, self._rule_for = strict, rule_for
        self.model, self.dims, self.chooser = model, dims, chooser
        self.builder = Builder(model, dims.sources)
        self.inference = Inference(model.opset_imports, list(dims.sizes))
        self.opset = model.opset_imports[""]
        self.rewrites: list[Rewrite] = []
        self.grown: dict[Any, ir.Value] = {}
        self.origins: dict[ir.Value, tuple[ir.Value, Mapping[int, Size]]] = {}
        """Grown value -> what it was grown from, and how."""
        self.states: dict[ir.Value, State] = {}
        """Input of a graph inside of a loop -> the initial state that it starts from."""
        self.larger_states = larger_states
        self._bounds: list[tuple[Bound, ir.Value]] = []
        self._evaluator, self._at_file = Evaluator(model), Evaluator(model, observed)
        self._observed = observed
        self.factors = FactorTable()
        self._follows: set[ir.Value] = set()
        self._known_sizes: dict[int, list[Size]] = {}
        for value in model.graph.inputs:
            self._remember(self.shape(value) or ())

    # ---- what rules ask

    def shape(self, value: ir.Value | None) -> Shape | None:
        return None if value is None else from_ir(value.shape)

    def constant(self, value: ir.Value | None) -> Any:
        """The numbers of a value that depends on no input, else None."""
        return self._evaluator.value(value)

    def constant_at_file(self, value: ir.Value | None) -> Any:
        """The numbers of a value that depends on sizes alone, as they are in the file, else None."""
        return self._at_file.value(value)

    def numbers(self, value: ir.Value | None) -> Shape | None:
        """What a tensor of sizes holds, as expressions of the dims."""
        array = self.constant(value)
        if array is None:
            return self.inference.numbers(value)
        is_short = array.dtype.kind in "iu" and array.size < budgets.MOST_NUMBERS_OF_A_SIZE_VALUE
        return tuple(number(n) for n in array.ravel()) if is_short else None

    def at_file(self, size: Size) -> int | None:
        return self.dims.at_file(size)

    def observed(self, value: ir.Value) -> tuple[int, ...] | None:
        return self._observed.get(value.name or "")

    def is_free(self, size: Size) -> bool:
        """Whether a size varies with the dims (and not with the data alone)."""
        return not is_number(size) and not self.inference.is_unknown(size)

    def is_unknown(self, size: Size) -> bool:
        return self.inference.is_unknown(size)

    def varies(self, value: ir.Value | None) -> bool:
        shape = self.shape(value)
        return shape is not None and any(not is_number(size) for size in shape)

    def like(self, size: int, axis: int) -> list[Size]:
        """The free sizes that were seen on this axis and had that number in the file, the simplest first."""
        seen = [s for s in self._known_sizes.get(axis, []) if self.at_file(s) == size]
        return sorted(seen, key=lambda s: len(str(s)))

    # ---- what rules do

    def replace(self, node: ir.Node, place: int, value: ir.Value | None, what: str) -> None:
        node.replace_input_with(place, value)
        self.note(node, what)

    def note(self, node: ir.Node, what: str) -> None:
        rewrite = Rewrite(name_of(node), node.op_type, what)
        if rewrite not in self.rewrites:
            self.rewrites.append(rewrite)

    def bound(self, size: Size, most: int, why: str, value: ir.Value) -> None:
        """Remember that a size must not exceed a number, as long as `value` is needed."""
        dim, limit = self.dims.limit(size, most)
        node = value.producer()
        assert node is not None
        if dim is None:
            symbols = " and ".join(sorted(f"`{s.name}`" for s in size.free_symbols))
            raise self.pinned(node, f"{why}, and `{spelled(size)}` depends on {symbols}", size)
        self._bounds.append((Bound(dim, limit, why), value))

    def bounds(self) -> tuple[Bound, ...]:
        """The limits of those values that are still part of the graph."""
        producers = [(bound, value.producer()) for bound, value in self._bounds]
        return tuple(dict.fromkeys(bound for bound, node in producers if node is not None and node.graph is not None))

    def pinned(self, node: ir.Node, why: str, size: Size = None, kind: type[PinnedError] = PinnedError) -> PinnedError:
        dims = sorted(s.name for s in size.free_symbols if s.name in self.dims.sizes) if size is not None else []
        named = " and ".join(f"`{dim}`" for dim in dims) or "the sizes of the file"
        sentence = f"{node.op_type} node `{name_of(node)}` pins {named}: {why}"
        return kind(sentence, node=name_of(node), operator=node.op_type, dim=dims[0] if dims else None)

    def free_size(self, node: ir.Node, sizes: Sequence[Size]) -> Size | None:
        """The first free one of sizes that a node takes for the same; all must be so at every size.

        Where they are not, another reading may be right.
        """
        free = [size for size in sizes if self.is_free(size)]
        for other in free[1:]:
            if self.strict and not self.dims.agree(free[0], other):
                why = f"`{spelled(free[0])}` meets `{spelled(other)}`"
                raise self.pinned(node, why, free[0] * other, DisagreeingError)
        return free[0] if free else None

    # ---- the walk itself

    def graph(self, graph: ir.Graph) -> None:
        """Walk through a graph; rules call it for the graphs inside of a node."""
        for node in list(graph):
            self.builder.enter(node)
            try:
                self._walk_node(node)
            finally:
                self.builder.leave()

    def _walk_node(self, node: ir.Node) -> None:
        rule = self._rule_for(node)
        shapes = rule(self, node) if rule else None
        self._infer_shapes(node)
        for value, shape in zip(node.outputs, shapes or (), strict=False):
            if shape is not None:
                value.shape = to_ir(shape)
        self._note_followers(node)
        self._settle_shapes(node)
        self.factors.carry(node)

    def _infer_shapes(self, node: ir.Node) -> None:
        types = [value.type for value in node.outputs]
        self.inference.infer(node)
        for value, told in zip(node.outputs, types, strict=True):
            value.type = told or value.type  # the file knows better
            array = self._small_constant(value)
            if array is not None:
                value.const_value = ir.tensor(array, name=value.name)
                value.shape = ir.Shape(array.shape)

    def _small_constant(self, value: ir.Value) -> Any:
        """The inference of others reads shapes off constants only where they are marked as such."""
        if value.const_value is not None or value.dtype not in (ir.DataType.INT64, ir.DataType.INT32):
            return None
        array = self.constant(value)
        return array if array is not None and array.size <= budgets.MOST_NUMBERS_OF_A_SIZE_VALUE else None

    def _note_followers(self, node: ir.Node) -> None:
        """Remember which numbers follow from free sizes: what is observed about them holds for the file only."""
        reads = is_op(node, *_READS_SIZES) and self.varies(node.inputs[0])
        if reads or any(value in self._follows for value in node.inputs):
            self._follows.update(node.outputs)

    def _settle_shapes(self, node: ir.Node) -> None:
        for value in node.outputs:
            seen = self.observed(value)
            shape = self.shape(value)
            if seen is not None and (shape is None or len(shape) != len(seen)):
                shape = self._guessed_shape(node, seen)
                value.shape = to_ir(shape)
            if shape is None:
                self._follows |= set() if self._is_rigid(node) else {value}
                continue
            if seen is not None:
                shape = tuple(self._settled_size(node, size, n) for size, n in zip(shape, seen, strict=True))
                value.shape = to_ir(shape)
            self._remember(shape)

    def _remember(self, shape: Shape) -> None:
        for axis, size in enumerate(shape):
            if self.is_free(size) and size not in self._known_sizes.setdefault(axis, []):
                self._known_sizes[axis].append(size)

    def _settled_size(self, node: ir.Node, size: Size, seen: int) -> Size:
        if self.is_unknown(size):
            return number(seen) if self._is_rigid(node) else size
        if self.at_file(size) == seen:
            return size
        if self._is_rigid(node):
            return number(seen)
        raise self.pinned(node, f"its output has {seen} where `{spelled(size)}` follows from its inputs", size)

    def _is_rigid(self, node: ir.Node) -> bool:
        """Whether nothing that goes into the node varies, so that what was observed is always so."""
        if node.op_type in _DATA_DEPENDENT:
            return False
        return not any(self.varies(value) or value in self._follows for value in node.inputs)

    def _guessed_shape(self, node: ir.Node, seen: tuple[int, ...]) -> Shape:
        """An operator without a rule: like an input of the same shape, else as observed if nothing varies."""
        if self._is_rigid(node):
            return tuple(number(n) for n in seen)
        for value in node.inputs:
            shape = self.shape(value)
            if shape is not None and tuple(self.at_file(size) for size in shape) == seen:
                return shape
        if is_standard(node):
            return tuple(self.inference.unknown() for _ in seen)
        free = [size for value in node.inputs for size in self.shape(value) or () if self.is_free(size)]
        domain = f" of the domain `{node.domain}`"
        raise self.pinned(node, f"nothing is known about this operator{domain}", product(free) if free else None)


# ---- what a rule is

Shapes = Sequence[Shape | None] | None
"""The shapes of a node's outputs, None where the inference knows them."""
Rule = Callable[[Walk, ir.Node], Shapes]
Wants = Mapping[int, Size]
"""Axis -> the size that it shall have."""


# ---- which factors each axis is the product of, in their order


class FactorTable:
    """Only what somebody has split or merged is written down; any other size is its own factor."""

    def __init__(self) -> None:
        self._known: dict[ir.Value, tuple[Factors, ...]] = {}
        self._orders: dict[Size, Factors] = {}

    def of(self, value: ir.Value) -> tuple[Factors, ...]:
        return self._known.get(value) or tuple((size,) for size in from_ir(value.shape) or ())

    def set(self, value: ir.Value, factors: Sequence[Factors]) -> None:
        self._known[value] = tuple(factors)
        self._orders |= {product(axis): axis for axis in factors if len(axis) > 1}

    def order(self, size: Size) -> Factors:
        """The factors of a size in the order in which they were last met."""
        return self._orders.get(size, (size,))

    def carry(self, node: ir.Node) -> None:
        """An axis that came through a node unchanged keeps its factors."""
        known = [self._known[value] for value in node.inputs if value is not None and value in self._known]
        for output in node.outputs:
            shape = from_ir(output.shape)
            if output in self._known or not known or not shape:
                continue
            found = tuple(_came_through(size, axis - len(shape), known) for axis, size in enumerate(shape))
            if any(len(factors) > 1 for factors in found):
                self._known[output] = found


def _came_through(size: Size, axis: int, inputs: Sequence[tuple[Factors, ...]]) -> Factors:
    """`axis` counts from the end, as broadcasting does; another axis of the same size comes second."""
    if is_number(size):
        return (size,)
    for rows in inputs:
        if len(rows) >= -axis and product(rows[axis]) == size:
            return rows[axis]
    every = [factors for rows in inputs for factors in rows if product(factors) == size]
    return every[0] if every else (size,)


# ---- operators that behave alike, and how their axes are written in the different opsets

BROADCASTING = {
    *("Add", "Sub", "Mul", "Div", "Pow", "Mod", "PRelu", "Sum", "Mean", "Min", "Max", "Where"),
    *("And", "Or", "Xor", "Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual"),
    *("BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor"),
}
UNARY = {
    *("Abs", "Neg", "Exp", "Log", "Sqrt", "Reciprocal", "Sin", "Cos", "Tan", "Tanh", "Sigmoid", "Relu", "Gelu"),
    *("LeakyRelu", "Elu", "Selu", "Softplus", "Softsign", "HardSigmoid", "HardSwish", "Erf", "Mish"),
    *("Floor", "Ceil", "Round", "Sign", "Not", "BitwiseNot", "IsNaN", "IsInf", "Cast", "CastLike", "Identity"),
    *("Clip", "Dropout", "Celu", "ThresholdedRelu"),
    *("Acos", "Asin", "Atan", "Cosh", "Sinh", "Acosh", "Asinh", "Atanh"),
}
ELEMENTWISE = BROADCASTING | UNARY


def axes_of(walk: Walk, node: ir.Node, rank: int, place: int = 1) -> list[int] | None:
    """The axes that a node names, as an attribute (older opsets) or as an input; None where it names none."""
    found = attribute(node, "axes")
    if found is None and len(node.inputs) > place:
        found = walk.constant(node.inputs[place])
    return None if found is None else [int(axis) % max(rank, 1) for axis in found]


def einsum_terms(node: ir.Node) -> list[str] | None:
    """The letters of each operand and of the result; None where they are not all written down."""
    equation = attribute(node, "equation", "")
    equation = equation.decode() if isinstance(equation, bytes) else str(equation)
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    return [*terms, right] if arrow and "." not in equation and len(terms) == len(node.inputs) else None


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """The sizes that tensors have together; of two free ones the first."""
    rank = max((len(shape) for shape in shapes), default=0)
    result = []
    for axis in range(-rank, 0):
        sizes = [shape[axis] for shape in shapes if len(shape) >= -axis and shape[axis] != 1]
        free = [size for size in sizes if not is_number(size)]
        result.append(free[0] if free else sizes[0] if sizes else number(1))
    return tuple(result)
