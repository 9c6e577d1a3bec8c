"""The shape of every value of a file as formulas of its dims: the graph walked in order, node by node.

Where neither a rule nor the inference knows a size, and the data do not decide it, it may be read off runs: a formula
that fits is taken, and everything behind it is known again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Protocol

import onnx_ir as ir
import sympy

from anyshape.costs.shape_rules import DATA_DEPENDENT, DECIDED_BY, RULES
from anyshape.costs.size_numbers import Choice, SizeNumbers, is_condition
from anyshape.onnxfile.graph import attribute, graphs_in, is_op, is_standard, maker
from anyshape.onnxfile.inferred_shapes import Inference
from anyshape.sizes import budgets
from anyshape.sizes.expressions import Shape, Size, number, symbols_of, to_ir


class Evidence(Protocol):
    """What runs show, by the names of values."""

    def holds(self, name: str, shape: Shape) -> bool | None: ...

    def fitted_shape(self, name: str) -> Shape | None: ...


class ShapeWalk:
    """What is known of the values, after `graph` was walked."""

    def __init__(self, model: ir.Model, dims: Mapping[str, Size], evidence: Evidence | None = None) -> None:
        self.numbers = SizeNumbers()
        self.trips: dict[ir.Node, Size] = {}
        """How often the body of a Scan or Loop runs."""
        self.choices: dict[ir.Node, Size] = {}
        """What an If decides by, where sizes decide it."""
        self.read: set[ir.Value] = set()
        """Values whose formula was read off runs."""
        self.needs: dict[Size, None] = {}
        """What must not be below zero: the nodes are not made for other sizes."""
        self._dims, self._evidence = dict(dims), evidence
        self._shapes: dict[ir.Value, Shape | None] = {}
        self._inference = Inference(model.opset_imports, list(dims))
        self._of_data: dict[ir.Value, bool] = {}

    # ---- what is known

    def shape(self, value: ir.Value | None) -> Shape | None:
        if value is None:
            return None
        if value not in self._shapes:
            tensor = value.const_value
            sizes = value.shape if tensor is None else ir.Shape([int(str(size)) for size in tensor.shape])
            self._shapes[value] = self._exact_shape(sizes)
        return self._shapes[value]

    def known_shape(self, value: ir.Value) -> Shape | None:
        """The shape, if all of it is known."""
        shape = self.shape(value)
        return None if shape is None or any(map(self.is_unknown, shape)) else shape

    def is_unknown(self, size: Size) -> bool:
        return not all(self._dims.get(symbol.name) == symbol for symbol in symbols_of(size))

    def unknown(self) -> Size:
        return self._inference.unknown()

    def require(self, size: Size) -> None:
        if not size.is_nonnegative and not self.is_unknown(size):
            self.needs[size] = None

    def assign(self, value: ir.Value, shape: Shape | None) -> None:
        if shape is not None and not all(_is_manageable(size) for size in shape):
            shape = tuple(size if _is_manageable(size) else self.unknown() for size in shape)
        self._shapes[value] = shape
        value.shape = None if shape is None else to_ir(shape)

    # ---- the walk

    def graph(self, graph: ir.Graph) -> None:
        for node in graph:
            self._node(node, is_main=False)

    def main(self, graph: ir.Graph) -> None:
        """The graph of the file itself, whose values runs show."""
        for node in graph:
            self._node(node, is_main=True)

    def _node(self, node: ir.Node, *, is_main: bool) -> None:
        body = _BODIES.get(node.op_type) if is_standard(node) else None
        if body is not None:
            shapes = body(self, node)
        else:
            for graph in graphs_in(node):
                self.graph(graph)
            self._inference.infer(node)
            shapes = [self._exact_shape(value.shape) for value in node.outputs]
            rule = RULES.get(node.op_type) if is_standard(node) else None
            if rule is not None and shapes:
                shapes[0] = self._ruled_shape(rule, node)
                shapes[1:] = [shapes[0] if node.op_type == "MaxPool" else shape for shape in shapes[1:]]
        for value, shape in zip(node.outputs, shapes, strict=True):
            self.assign(value, shape)
            if is_main and self._evidence is not None and value.name:
                self._compare_with_runs(node, value, self._evidence)
        self.numbers.learn(node, self.shape)
        self._tell_numbers(node)

    def _ruled_shape(self, rule: Callable[[ShapeWalk, ir.Node], Shape | None], node: ir.Node) -> Shape | None:
        try:
            return rule(self, node)
        except (TypeError, ValueError, IndexError, KeyError, AttributeError, ZeroDivisionError, RecursionError):
            return None  # a file is data: a node may contradict itself

    def _tell_numbers(self, node: ir.Node) -> None:
        found = self.numbers.of(node.outputs[0]) if node.outputs else None
        if found is not None and found.ndim <= 1 and not any(map(is_condition, found.ravel())):
            self._inference.tell(node.outputs[0], tuple(found.ravel()))

    def _exact_shape(self, shape: ir.Shape | None) -> Shape | None:
        return None if shape is None else tuple(self._exact_size(dim) for dim in shape)

    def _exact_size(self, dim: int | ir.SymbolicDim) -> Size:
        if isinstance(dim, int):
            return number(dim)
        if dim.value is None:
            return self.unknown()
        size: Size = dim._expr  # noqa: SLF001  the expression behind a dim has no public name
        return _tidy_size(size.xreplace({s: self._dims[s.name] for s in size.free_symbols if s.name in self._dims}))

    # ---- what runs show

    def _compare_with_runs(self, node: ir.Node, value: ir.Value, evidence: Evidence) -> None:
        """A shape that is unknown or not the real one is read off runs, if may be."""
        shape, name = self.known_shape(value), str(value.name)
        if shape is not None and evidence.holds(name, shape) is not False:
            return
        if self._is_decided_by_data(node):
            return
        fitted = evidence.fitted_shape(name)
        if fitted is not None:
            self.assign(value, fitted)
            self.read.add(value)

    def _is_decided_by_data(self, node: ir.Node) -> bool:
        """Whether the sizes of a node's results may depend on what stands in the inputs of the file."""
        if (node.op_type in DATA_DEPENDENT and is_standard(node)) or graphs_in(node):
            return True  # which branch is taken at other sizes than those that were run, nobody knows
        if any(self._has_data_size(value) for value in node.inputs if value is not None):
            return True
        if is_standard(node):
            return any(
                map(
                    self._is_of_data, (node.inputs[i] for i in DECIDED_BY.get(node.op_type, ()) if i < len(node.inputs))
                )
            )
        return any(self._is_of_data(value) for value in node.inputs if value is not None and not _is_floating(value))

    def _has_data_size(self, value: ir.Value) -> bool:
        """Whether a size of this value is not known: were it not for data, it would have been read off runs."""
        maker = value.producer()
        if isinstance(value.type, ir.SequenceType) and maker is not None:
            return self._is_decided_by_data(maker)  # which has no shape of its own
        return ir.convenience.get_const_tensor(value) is None and self.known_shape(value) is None

    def _is_of_data(self, value: ir.Value | None) -> bool:
        """Whether a value holds what stands in the inputs of the file, and not sizes and constants alone."""
        if value is None or self.numbers.of(value) is not None or ir.convenience.get_const_tensor(value) is not None:
            return False
        if value not in self._of_data:
            self._of_data[value] = True  # what depends on itself is nothing that could be told
            node = value.producer()
            if node is not None and is_op(node, "Shape", "Size"):
                self._of_data[value] = any(self._has_data_size(one) for one in node.inputs if one is not None)
            elif node is not None and not graphs_in(node) and is_standard(node):
                self._of_data[value] = any(map(self._is_of_data, node.inputs))
        return self._of_data[value]

    # ---- bodies

    def branches(self, node: ir.Node) -> list[Shape | None]:
        """If: the shape of either branch where they are alike, or where sizes decide which one is taken."""
        then, other = (attribute(node, name) for name in ("then_branch", "else_branch"))
        for graph in (then, other):
            self.graph(graph)
        self._inference.infer(node)
        asked = self.numbers.row(node.inputs[0])
        condition = asked[0] if asked is not None and len(asked) == 1 else None
        if condition is not None:
            self.choices[node] = condition
        pairs = zip(then.outputs, other.outputs, strict=True)
        return [self._either_shape(self.shape(a), self.shape(b), condition) for a, b in pairs]

    def _either_shape(self, one: Shape | None, other: Shape | None, condition: Size | None) -> Shape | None:
        if condition in (sympy.true, sympy.false):
            return one if condition == sympy.true else other
        if one is None or other is None or len(one) != len(other):
            return None
        return tuple(self._either_size(a, b, condition) for a, b in zip(one, other, strict=True))

    def _either_size(self, one: Size, other: Size, condition: Size | None) -> Size:
        if one == other:
            return one
        if condition is None or self.is_unknown(one) or self.is_unknown(other):
            return self.unknown()
        return Choice(condition, one, other)

    def scan(self, node: ir.Node) -> list[Shape | None]:
        """States keep their shapes, and what is scanned loses an axis, which the results get."""
        body, count = attribute(node, "body"), attribute(node, "num_scan_inputs")
        states = len(node.inputs) - count
        axes = attribute(node, "scan_input_axes") or [0] * count
        length = self.unknown()
        for value, inner in zip(node.inputs[:states], body.inputs, strict=False):
            self.assign(inner, self.shape(value))
        for value, inner, axis in zip(node.inputs[states:], body.inputs[states:], axes, strict=True):
            shape = self.shape(value)
            if shape is not None:
                place = axis % len(shape)
                length = shape[place] if self.is_unknown(length) else length
                shape = (*shape[:place], *shape[place + 1 :])
            self.assign(inner, shape)
        self.graph(body)
        self.trips[node] = length
        self._copy_types(body.outputs, node.outputs)
        out_axes = attribute(node, "scan_output_axes") or [0] * (len(node.outputs) - states)
        kept = [self.shape(value) for value in node.inputs[:states]]
        rows = zip(body.outputs[states:], out_axes, strict=True)
        return [*kept, *(self._with_axis(self.shape(value), length, axis) for value, axis in rows)]

    def _with_axis(self, shape: Shape | None, size: Size, axis: int) -> Shape | None:
        if shape is None:
            return None
        axis %= len(shape) + 1
        return (*shape[:axis], size, *shape[axis:])

    def loop(self, node: ir.Node) -> list[Shape | None]:
        """States keep a shape that the body does not change; how often it runs is known where nothing but a count
        ends it.
        """
        body = attribute(node, "body")
        states = len(node.inputs) - 2
        self.assign(body.inputs[0], ())
        self.assign(body.inputs[1], ())
        given = [self.shape(value) for value in node.inputs[2:]]
        for _ in range(budgets.MOST_LOOKS_AT_A_LOOP):
            for inner, shape in zip(body.inputs[2:], given, strict=True):
                self.assign(inner, shape)
            self.graph(body)
            left = [self.shape(value) for value in body.outputs[1 : 1 + states]]
            if left == given:
                break
            given = [self._common_shape(a, b) for a, b in zip(given, left, strict=True)]
        else:
            given = [None] * states
        trips = self._trips_of_loop(node, body)
        self.trips[node] = trips
        self._copy_types(body.outputs[1:], node.outputs)
        stacked = [self._with_axis(self.shape(value), trips, 0) for value in body.outputs[1 + states :]]
        return [*given, *stacked]

    def _common_shape(self, one: Shape | None, other: Shape | None) -> Shape | None:
        if one is None or other is None or len(one) != len(other):
            return None
        return tuple(a if a == b else self.unknown() for a, b in zip(one, other, strict=True))

    def _trips_of_loop(self, node: ir.Node, body: ir.Graph) -> Size:
        count = self.numbers.row(node.inputs[0])
        first = node.inputs[1]
        passed: ir.Value | None = body.outputs[0]
        while (same := maker(passed, "Identity")) is not None:
            passed = same.inputs[0]
        goes_on = passed is body.inputs[1] or self.numbers.row(passed) == (sympy.true,)
        begins = first is None or self.numbers.row(first) == (sympy.true,)
        if count is None or len(count) != 1 or not goes_on or not begins:
            return self.unknown()
        return sympy.Max(0, count[0])

    def _copy_types(self, inner: Sequence[ir.Value], outer: Sequence[ir.Value]) -> None:
        for one, other in zip(inner, outer, strict=True):
            other.type = other.type or one.type


_BODIES: Mapping[str, Callable[[ShapeWalk, ir.Node], list[Shape | None]]] = {
    "If": ShapeWalk.branches,
    "Scan": ShapeWalk.scan,
    "Loop": ShapeWalk.loop,
}


def _is_manageable(size: Size) -> bool:
    choices = len(size.atoms(Choice))
    return choices <= budgets.MOST_CHOICES_OF_A_SIZE and len(str(size)) <= budgets.LONGEST_SIZE_TEXT


def _is_floating(value: ir.Value) -> bool:
    return value.dtype is not None and value.dtype.is_floating_point()


@lru_cache(maxsize=4096)
def _tidy_size(size: Size) -> Size:
    return sympy.expand(size) if size.is_Add else size
