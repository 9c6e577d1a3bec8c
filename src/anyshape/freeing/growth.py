"""A value of fixed size made to follow a dim: as a formula, by growing what it is computed from, or as part of a table.

Nothing that exists is changed: the grown value is a new one, beside the old, which goes if nobody else needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from anyshape.freeing.constant_patterns import formula, is_uniform, ramp_step
from anyshape.freeing.records import StatePinnedError
from anyshape.freeing.walk import ELEMENTWISE, Walk, Wants, axes_of, broadcast, einsum_terms
from anyshape.onnxfile.graph import attribute, is_standard
from anyshape.sizes.expressions import ONE, Shape, Size, is_number, number, product, spelled


def grow_input(walk: Walk, node: ir.Node, place: int, wants: Wants, *, broadcasts: bool) -> None:
    """Replace an input of a node by one that has these sizes (or 1, where the node broadcasts)."""
    value = node.inputs[place]
    assert value is not None
    new = grown(walk, node, value, wants, broadcasts=broadcasts)
    if new is not value:
        sizes = ", ".join(f"axis {axis} to `{spelled(size)}`" for axis, size in wants.items())
        walk.replace(node, place, new, f"operand `{value.name}` grows along {sizes}")


def grow_fixed(walk: Walk, node: ir.Node, place: int, sizes: Wants, *, broadcasts: bool) -> None:
    """Grow an input along those axes where it is a number beside a free size; a 1 that broadcasts stays."""
    shape = walk.shape(node.inputs[place]) or () if place < len(node.inputs) else ()
    kept = {axis for axis, own in enumerate(shape) if is_number(own) and not (broadcasts and own == 1)}
    wants = {axis: size for axis, size in sizes.items() if axis in kept and walk.is_free(size)}
    if wants:
        grow_input(walk, node, place, wants, broadcasts=broadcasts)


def grown(walk: Walk, node: ir.Node, value: ir.Value, wants: Wants, *, broadcasts: bool) -> ir.Value:
    """The value with these sizes, for the sake of `node`; or 1 instead of them, where the user broadcasts."""
    shape = walk.shape(value)
    assert shape is not None
    wants = {axis: size for axis, size in wants.items() if shape[axis] != size}
    if broadcasts:
        wants = {axis: size for axis, size in wants.items() if shape[axis] != 1}
    if wants and value in walk.origins:
        origin, before = walk.origins[value]
        return grown(walk, node, origin, {**before, **wants}, broadcasts=broadcasts)
    key = (walk.builder.graph, value, tuple(sorted(wants.items())), broadcasts)
    if wants and key not in walk.grown:
        _refuse_other_sizes(walk, node, value, shape, wants)
        walk.grown[key] = _grown_and_repeated(walk, node, value, wants, broadcasts=broadcasts)
        walk.origins[walk.grown[key]] = (value, wants)
    return walk.grown[key] if wants else value


def _refuse_other_sizes(walk: Walk, node: ir.Node, value: ir.Value, shape: Shape, wants: Wants) -> None:
    for axis, size in wants.items():
        if not is_number(shape[axis]):
            why = f"`{value.name}` has `{spelled(shape[axis])}` on axis {axis}, not `{spelled(size)}`"
            raise walk.pinned(node, why, size)
        if int(shape[axis]) not in (1, walk.at_file(size)):
            why = f"`{value.name}` has {shape[axis]} on axis {axis}, where `{spelled(size)}` is {walk.at_file(size)}"
            raise walk.pinned(node, why, size)


def _grown_and_repeated(walk: Walk, node: ir.Node, value: ir.Value, wants: Wants, *, broadcasts: bool) -> ir.Value:
    shape = walk.shape(value) or ()
    inner = {axis: size for axis, size in wants.items() if shape[axis] != 1}
    new = _larger_value(walk, node, value, inner) if inner else value
    if broadcasts:
        return new
    shape = walk.shape(new) or ()
    flat = {axis: size for axis, size in wants.items() if shape[axis] == 1}
    return _repeated_along_ones(walk, new, shape, flat) if flat else new


def _repeated_along_ones(walk: Walk, value: ir.Value, shape: Shape, wants: Wants) -> ir.Value:
    """Along axes of size 1; a 0 that the file had there once can also be the first of 0, 1, 2, ..."""
    array = walk.constant(value)
    if len(wants) == 1 and array is not None and array.dtype == np.int64 and not array.any():
        ((axis, size),) = wants.items()
        if walk.at_file(size) == 1 and walk.chooser.choose((False, True)):
            ramp = walk.builder.ramp(size, axis, len(shape))
            return walk.builder.expanded(
                ramp,
                tuple(size if a == axis else ONE for a in range(len(shape))),
                {a: s for a, s in enumerate(shape) if a != axis and s != 1},
            )
    return walk.builder.expanded(value, shape, wants)


def _larger_value(walk: Walk, node: ir.Node, value: ir.Value, wants: Wants) -> ir.Value:
    """A formula first, since it has no limit; then the origin of the value; a table last."""
    array = walk.constant(value)
    merged = next((axis for axis, size in wants.items() if len(walk.factors.order(size)) > 1), None)
    if array is not None and merged is not None and not is_uniform(array, merged):
        return _grown_by_factors(walk, node, array, wants, merged)
    new = formula(walk, array, wants) if array is not None else None
    if new is None and value.producer() is not None:
        new = _grown_backwards(walk, value, wants)
    if new is None and (array is not None or value.const_value is not None):
        new = _table(walk, value, wants)
    if new is None:
        axis, size = next(iter(wants.items()))
        kind = "the input" if value.is_graph_input() else "the computed"
        number_there = (walk.shape(value) or ())[axis]
        why = f"{kind} `{value.name}` has {number_there} on axis {axis} for `{spelled(size)}`"
        trouble = walk.pinned(node, why, size)
        raise StatePinnedError(trouble, walk.states[value], wants) if value in walk.states else trouble
    return new


def _grown_by_factors(walk: Walk, node: ir.Node, array: Any, wants: Wants, axis: int) -> ir.Value:
    """Along an axis that is a product, as `batch*heads`, each factor grows by itself."""
    factors = walk.factors.order(wants[axis])
    sizes = [walk.at_file(size) or 1 for size in factors]
    apart = walk.builder.constant(array.reshape(*array.shape[:axis], *sizes, *array.shape[axis + 1 :]))
    inner = {axis + k: size for k, size in enumerate(factors) if not is_number(size)}
    inner |= {a if a < axis else a + len(factors) - 1: size for a, size in wants.items() if a != axis}
    _refuse_picture(walk, node, apart, inner, wants[axis])
    new = grown(walk, node, apart, inner, broadcasts=False)
    shape = tuple(wants.get(a, number(n)) for a, n in enumerate(array.shape))
    return walk.builder.node("Reshape", [new, walk.builder.vector(shape)], shape, dtype=new.dtype)


def _refuse_picture(walk: Walk, node: ir.Node, value: ir.Value, wants: Wants, size: Size) -> None:
    """A table over two dims at once, as positions in a picture: a corner of it is no smaller picture."""
    array = walk.constant(value)
    varying = [axis for axis in wants if not is_uniform(array, axis)]
    if len(varying) > 1 and formula(walk, array, wants) is None:
        dims = " and ".join(sorted(f"`{symbol.name}`" for symbol in size.free_symbols))
        raise walk.pinned(node, f"a table of {array.size} entries stands for `{spelled(size)}`, over {dims}", size)


# ---- tables


def _table(walk: Walk, value: ir.Value, wants: Wants) -> ir.Value:
    """The first entries along each axis; there are no more than the file has."""
    array = walk.constant(value)
    same = [axis for axis in wants if array is not None and is_uniform(array, axis)]
    if same:
        value = walk.builder.constant(array[tuple(slice(1) if a in same else slice(None) for a in range(array.ndim))])
        wants = {axis: size for axis, size in wants.items() if axis not in same}
    shape = list(walk.shape(value) or ())
    for axis, size in wants.items():
        shape[axis] = size
    new = walk.builder.sliced(value, {axis: (number(0), size) for axis, size in wants.items()}, tuple(shape))
    for axis, size in wants.items():
        rows = (walk.shape(value) or ())[axis]
        walk.bound(size, int(rows), f"the table `{value.name}` has {rows} entries along axis {axis}", new)
    return new


# ---- growth pushed back through the node that computes a value, to the constants behind it: a function per operator
#
# A node is not changed but gets a twin beside it: the same operator on operands that have grown.

ORIGIN = "anyshape.origin"
"""Under this key a twin knows the node of the file that it stands beside."""
Pushed = ir.Value | None
"""The grown output of a twin; None where the node is not understood."""


@dataclass(frozen=True)
class Twin:
    """A node whose output is to grow along some axes."""

    walk: Walk
    node: ir.Node
    wants: Wants

    def shape(self, place: int) -> Shape | None:
        """Of an operand."""
        return self.walk.shape(self.node.inputs[place])

    @property
    def result(self) -> Shape:
        """The shape of the node's output, before it grows."""
        return self.walk.shape(self.node.outputs[0]) or ()

    @property
    def grown_result(self) -> Shape:
        return tuple(self.wants.get(axis, size) for axis, size in enumerate(self.result))

    def operand(self, wants: Wants, place: int = 0) -> ir.Value:
        """An operand that has grown."""
        value = self.node.inputs[place]
        assert value is not None
        return grown(self.walk, self.node, value, wants, broadcasts=True)

    def exact_operand(self, value: ir.Value | None, wants: Wants) -> ir.Value | None:
        """The same for a node that does not broadcast."""
        return None if value is None else grown(self.walk, self.node, value, wants, broadcasts=False)

    def on(self, inputs: Sequence[ir.Value | None], shape: Shape) -> ir.Value:
        """The same node on other inputs."""
        node = self.node
        twin = ir.node(node.op_type, list(inputs), attributes=dict(node.attributes), domain=node.domain)
        twin.meta[ORIGIN] = node.meta.get(ORIGIN, node)
        return self.walk.builder.insert(twin, shape, node.outputs[0].dtype)

    def shape_after(self, operand: ir.Value, inner: Wants) -> Shape:
        """The node's shape, with what became of the operand's grown axes: `inner`, in the order of `wants`."""
        shape, sizes = list(self.result), self.walk.shape(operand) or ()
        for axis, source in zip(self.wants, inner, strict=True):
            shape[axis] = sizes[source]
        return tuple(shape)

    def moved(self, source: Callable[[int], int | None]) -> Pushed:
        """For nodes whose output axes are those of their first input, each elsewhere."""
        inner: dict[int, Size] = {}
        for axis, size in self.wants.items():
            place = source(axis)
            if place is None:
                return None
            inner[place] = size
        operand = self.operand(inner)
        return self.on([operand, *self.node.inputs[1:]], self.shape_after(operand, inner))


# ---- nodes whose axes are those of their operands, in place or moved: growth goes to the same axis there


def _elementwise(twin: Twin) -> Pushed:
    walk, rank = twin.walk, len(twin.result)
    inputs: list[ir.Value | None] = []
    for place, value in enumerate(twin.node.inputs):
        shape = walk.shape(value)
        if shape is None:
            inputs.append(value)
            continue
        shift = rank - len(shape)
        own = {axis - shift: size for axis, size in twin.wants.items() if axis >= shift and shape[axis - shift] != 1}
        inputs.append(twin.operand(own, place))
    return twin.on(inputs, broadcast([walk.shape(v) or () for v in inputs if v is not None]))


def _transpose(twin: Twin) -> Pushed:
    order = attribute(twin.node, "perm") or list(range(len(twin.result)))[::-1]
    return twin.moved(lambda axis: int(order[axis]))


def _unsqueeze(twin: Twin) -> Pushed:
    added = axes_of(twin.walk, twin.node, len(twin.result))
    if added is None:
        return None
    return twin.moved(lambda axis: None if axis in added else axis - sum(a < axis for a in added))


def _squeeze(twin: Twin) -> Pushed:
    shape = twin.shape(0) or ()
    dropped = axes_of(twin.walk, twin.node, len(shape))
    if dropped is None:
        dropped = [axis for axis, size in enumerate(shape) if size == 1]
    kept = [axis for axis in range(len(shape)) if axis not in dropped]
    return twin.moved(lambda axis: kept[axis])


def _kept_axes(twin: Twin) -> Pushed:
    """Reductions that keep their axes, and normalisations: every other axis passes."""
    node, rank = twin.node, len(twin.shape(0) or ())
    worked = axes_of(twin.walk, node, rank)
    if node.op_type.startswith("Reduce") and not attribute(node, "keepdims", 1):
        return None
    if node.op_type == "LayerNormalization":
        worked = list(range(int(attribute(node, "axis", -1)) % rank, rank))
    if node.op_type in ("Softmax", "LogSoftmax"):
        worked = [int(attribute(node, "axis", -1)) % rank]
    return twin.moved(lambda axis: None if worked is None or axis in worked else axis)


def _same_axes(twin: Twin) -> Pushed:
    return twin.moved(lambda axis: axis)


def _reshape(twin: Twin) -> Pushed:
    """Axes that only move, because sizes of 1 come or go."""
    data, out = twin.shape(0) or (), twin.result
    inner: dict[int, Size] = {}
    for axis, size in twin.wants.items():
        before = product(out[:axis])
        same = [i for i, s in enumerate(data) if s == out[axis] and product(data[:i]) == before]
        if not same:
            return None
        inner[same[0]] = size
    operand = twin.operand(inner)
    shape = twin.shape_after(operand, inner)
    return twin.on([operand, twin.walk.builder.vector(shape)], shape)


def _matmul(twin: Twin) -> Pushed:
    """Rows of the first matrix, which pass through."""
    left, right, rank = twin.shape(0), twin.shape(1), len(twin.result)
    if left is None or right is None or len(left) != rank or len(right) > 2:
        return None
    return twin.moved(lambda axis: axis if axis < rank - 1 else None)


def _einsum(twin: Twin) -> Pushed:
    """Letters of the result: every operand that has one of them grows along it."""
    terms = einsum_terms(twin.node)
    if terms is None:
        return None
    *operands, result = terms
    sizes = {result[axis]: size for axis, size in twin.wants.items()}
    inputs: list[ir.Value | None] = []
    for term, value in zip(operands, twin.node.inputs, strict=True):
        own = {axis: sizes[letter] for axis, letter in enumerate(term) if letter in sizes}
        inputs.append(twin.exact_operand(value, own))
    return twin.on(inputs, twin.grown_result)


# ---- nodes that repeat, join or pick: growth goes to what says how often, or to the rows that are picked


def _expand(twin: Twin) -> Pushed:
    wants, target, data = twin.wants, twin.walk.numbers(twin.node.inputs[1]), twin.shape(0)
    if target is None or data is None:
        return None
    shift, lead = len(twin.result) - len(data), len(twin.result) - len(target)
    operand = twin.operand({a - shift: s for a, s in wants.items() if a >= shift and data[a - shift] != 1})
    goal = [wants.get(axis + lead, size) for axis, size in enumerate(target)]
    return twin.on([operand, twin.walk.builder.vector(goal)], twin.grown_result)


def _tile(twin: Twin) -> Pushed:
    walk, wants = twin.walk, twin.wants
    repeats, data = walk.constant(twin.node.inputs[1]), twin.shape(0)
    if repeats is None or data is None or any(repeats[axis] != 1 and data[axis] != 1 for axis in wants):
        return None
    operand = twin.operand({axis: size for axis, size in wants.items() if data[axis] != 1})
    sizes = walk.shape(operand) or ()  # of size 1 where it turned out to be the same everywhere, too
    times = [wants[a] if a in wants and sizes[a] == 1 else number(n) for a, n in enumerate(repeats)]
    return twin.on([operand, walk.builder.vector(times)], twin.grown_result)


def _concat(twin: Twin) -> Pushed:
    if int(attribute(twin.node, "axis", 0)) % len(twin.result) in twin.wants:
        return None
    return twin.on([twin.exact_operand(value, twin.wants) for value in twin.node.inputs], twin.grown_result)


def _gather(twin: Twin) -> Pushed:
    """Axes of the output: those of the table before its indexed axis, those of the index, the rest of the table."""
    walk, wants, table, index = twin.walk, twin.wants, twin.shape(0), twin.shape(1)
    if table is None or index is None:
        return None
    axis = int(attribute(twin.node, "axis", 0)) % len(table)
    of_index = {a - axis: s for a, s in wants.items() if axis <= a < axis + len(index)}
    of_table = {a if a < axis else a - len(index) + 1: s for a, s in wants.items() if a - axis not in of_index}
    data, where = twin.operand(of_table), twin.operand(of_index, 1)
    new, places = walk.shape(data) or (), walk.shape(where) or ()
    result = twin.on([data, where], (*new[:axis], *places, *new[axis + 1 :]))
    if is_number(table[axis]):
        _bound_rows(twin, int(table[axis]), of_index, result)
    return result


def _bound_rows(twin: Twin, rows: int, wants: Wants, result: ir.Value) -> None:
    """A ramp of indices comes to the end of the table."""
    index, table = twin.walk.constant(twin.node.inputs[1]), twin.node.inputs[0]
    if index is None:
        return
    for axis, size in wants.items():
        step = None if is_uniform(index, axis) else ramp_step(index, axis)
        if step is not None:
            name = table.name if table is not None else "?"
            first = int(np.take(index, 0, axis).max())
            most = rows - first if (step == 1).all() and index.min() >= 0 else index.shape[axis]
            twin.walk.bound(size, most, f"the table `{name}` has {rows} rows", result)


def _gather_elements(twin: Twin) -> Pushed:
    """The output has the shape of the index, and the data has it, too, but for the axis that is indexed."""
    data = twin.shape(0)
    if data is None:
        return None
    own = int(attribute(twin.node, "axis", 0)) % len(data)
    others = {axis: size for axis, size in twin.wants.items() if axis != own and is_number(data[axis])}
    pairs = zip(twin.node.inputs, (others, twin.wants), strict=True)
    inputs = [twin.exact_operand(value, wants) for value, wants in pairs]
    return twin.on(inputs, twin.walk.shape(inputs[1]) or ())


def _slice(twin: Twin) -> Pushed:
    """A part of a longer table: a larger part of it."""
    walk, node, wants = twin.walk, twin.node, twin.wants
    if walk.opset < 10:
        return None
    data, starts, ends = node.inputs[0], walk.constant(node.inputs[1]), walk.constant(node.inputs[2])
    shape = walk.shape(data)
    if data is None or shape is None or starts is None or ends is None:
        return None
    axes = axes_of(walk, node, len(shape), 3)
    axes = list(range(len(starts))) if axes is None else axes
    steps = walk.constant(node.inputs[4]) if len(node.inputs) > 4 else None
    if steps is not None and any(steps != 1):
        return None
    source = twin.operand({a: s for a, s in wants.items() if a not in axes})
    parts: dict[int, tuple[Size, Size]] = {}
    limits: dict[int, tuple[int, int]] = {}
    result = list(walk.shape(source) or ())
    for axis, start, end in zip(axes, starts, ends, strict=True):
        rows = result[axis]
        if axis in wants and is_number(rows):
            first = min(int(start) % int(rows) if start < 0 else int(start), int(rows))
            limits[axis] = (int(rows) - first, int(rows))
            parts[axis], result[axis] = (number(first), first + wants[axis]), wants[axis]
        else:
            parts[axis] = (number(start), number(end))
            result[axis] = twin.result[axis]
    new = walk.builder.sliced(source, parts, tuple(result))
    for axis, (most, rows) in limits.items():
        walk.bound(wants[axis], most, f"the table `{data.name}` has {rows} rows", new)
    return new


_RULES: dict[str, Callable[[Twin], Pushed]] = {
    **dict.fromkeys(ELEMENTWISE, _elementwise),
    **dict.fromkeys(("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin"), _kept_axes),
    **dict.fromkeys(("Softmax", "LogSoftmax", "LayerNormalization"), _kept_axes),
    **dict.fromkeys(("CumSum", "Trilu", "QuantizeLinear", "DequantizeLinear"), _same_axes),
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
    "Squeeze": _squeeze,
    "Reshape": _reshape,
    "MatMul": _matmul,
    "Einsum": _einsum,
    "Expand": _expand,
    "Tile": _tile,
    "Concat": _concat,
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "Slice": _slice,
}


def _grown_backwards(walk: Walk, value: ir.Value, wants: Wants) -> Pushed:
    """The value with these sizes (or 1 where it is uniform along the axis); None where its origin is not understood."""
    node = value.producer()
    assert node is not None
    rule = _RULES.get(node.op_type)
    if rule is None or not is_standard(node) or node.outputs[0] is not value:
        return None
    return rule(Twin(walk, node, wants))
